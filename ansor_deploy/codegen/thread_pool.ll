; Made by docs/make_llvm.py of thread_pool.c, 8426688784f4151aaffd4d40148beb012438cae15a410eca9c46716673fbf585
module asm ".pushsection .bss.ansor_deploy_pool, \22aw\22, %nobits"
module asm ".type ansor_deploy_pool_1, %gnu_unique_object"
module asm ".size ansor_deploy_pool_1, 33408"
module asm ".p2align 7"
module asm "ansor_deploy_pool_1: .zero 33408"
module asm ".popsection"

%struct.pool = type { i32, i32, [120 x i8], i32, [124 x i8], i32, i32, i32, i64, i64, [96 x i8], ptr, ptr, ptr, %struct.environment, i32, i32, %struct.opaque, %struct.opaque, [80 x i8], [256 x %struct.share] }
%struct.environment = type { ptr, i32 }
%struct.opaque = type { [64 x i8] }
%struct.share = type { i32, i32, [120 x i8] }
%struct.timespec = type { i64, i64 }

@own_threads = internal global i32 1, align 4
@ansor_deploy_pool_1 = external global %struct.pool, align 128
@__TVMBackendParallelLaunch = hidden global ptr @ansor_deploy_launch, align 8
@wanted.there = internal global i32 0, align 4
@__const.alone.one = private constant { ptr, i32, [4 x i8] } { ptr null, i32 1, [4 x i8] zeroinitializer }, align 8

define noundef i32 @__tvm_ffi_use_threads(ptr nocapture noundef readnone %0, ptr nocapture noundef readonly %1, i32 noundef %2, ptr nocapture noundef readnone %3) {
  %5 = icmp eq i32 %2, 1
  br i1 %5, label %6, label %10

6:                                                ; preds = %4
  %7 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %8 = load i64, ptr %7, align 8
  %9 = trunc i64 %8 to i32
  store atomic i32 %9, ptr @own_threads seq_cst, align 4
  br label %10

10:                                               ; preds = %6, %4
  ret i32 0
}

define hidden i32 @ansor_deploy_launch(ptr noundef %0, ptr noundef %1, i32 %2) {
  %4 = alloca %struct.timespec, align 8
  %5 = alloca %struct.timespec, align 8
  %6 = alloca ptr, align 8
  %7 = alloca %struct.timespec, align 8
  %8 = alloca i64, align 8
  %9 = alloca %struct.environment, align 8
  %10 = alloca [128 x i64], align 16
  %11 = load atomic i32, ptr @wanted.there seq_cst, align 4
  %12 = icmp eq i32 %11, 0
  br i1 %12, label %13, label %28

13:                                               ; preds = %3
  call void @llvm.lifetime.start.p0(i64 1024, ptr nonnull %10)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(1024) %10, i8 0, i64 1024, i1 false)
  %14 = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 1024, ptr noundef nonnull %10)
  %15 = icmp slt i32 %14, 0
  br i1 %15, label %26, label %16

16:                                               ; preds = %13, %16
  %17 = phi i64 [ %24, %16 ], [ 0, %13 ]
  %18 = phi i32 [ %23, %16 ], [ 0, %13 ]
  %19 = getelementptr inbounds nuw [128 x i64], ptr %10, i64 0, i64 %17
  %20 = load i64, ptr %19, align 8
  %21 = call range(i64 0, 65) i64 @llvm.ctpop.i64(i64 %20)
  %22 = trunc nuw nsw i64 %21 to i32
  %23 = add nuw nsw i32 %18, %22
  %24 = add nuw nsw i64 %17, 1
  %25 = icmp eq i64 %24, 128
  br i1 %25, label %26, label %16

26:                                               ; preds = %16, %13
  %27 = phi i32 [ 256, %13 ], [ %23, %16 ]
  call void @llvm.lifetime.end.p0(i64 1024, ptr nonnull %10)
  store atomic i32 %27, ptr @wanted.there seq_cst, align 4
  br label %28

28:                                               ; preds = %26, %3
  %29 = phi i32 [ %27, %26 ], [ %11, %3 ]
  %30 = load atomic i32, ptr @own_threads seq_cst, align 4
  %31 = icmp slt i32 %30, 1
  br i1 %31, label %39, label %32

32:                                               ; preds = %28
  %33 = call i32 @llvm.smin.i32(i32 %29, i32 %30)
  %34 = call i32 @llvm.smin.i32(i32 %33, i32 256)
  %35 = icmp eq i32 %33, 1
  br i1 %35, label %39, label %36

36:                                               ; preds = %32
  %37 = cmpxchg ptr @ansor_deploy_pool_1, i32 0, i32 1 seq_cst seq_cst, align 128
  %38 = extractvalue { i32, i1 } %37, 1
  br i1 %38, label %41, label %39

39:                                               ; preds = %28, %36, %32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %9)
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %9, ptr noundef nonnull align 8 dereferenceable(16) @__const.alone.one, i64 16, i1 false)
  %40 = call i32 %0(i32 noundef 0, ptr noundef nonnull %9, ptr noundef %1)
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %9)
  br label %167

41:                                               ; preds = %36
  %42 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 4), align 4
  %43 = add i32 %42, 1
  %44 = icmp ult i32 %43, %34
  br i1 %44, label %45, label %60

45:                                               ; preds = %41, %53
  %46 = phi i32 [ %58, %53 ], [ %43, %41 ]
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %8)
  %47 = zext i32 %46 to i64
  %48 = inttoptr i64 %47 to ptr
  %49 = call i32 @pthread_create(ptr noundef nonnull %8, ptr noundef null, ptr noundef nonnull @worker, ptr noundef %48)
  %50 = icmp eq i32 %49, 0
  br i1 %50, label %53, label %51

51:                                               ; preds = %45
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8)
  %52 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 4), align 4
  br label %60

53:                                               ; preds = %45
  %54 = load i64, ptr %8, align 8
  %55 = call i32 @pthread_detach(i64 noundef %54)
  %56 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 4), align 4
  %57 = add i32 %56, 1
  store i32 %57, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 4), align 4
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8)
  %58 = add i32 %56, 2
  %59 = icmp ult i32 %58, %34
  br i1 %59, label %45, label %60

60:                                               ; preds = %53, %41, %51
  %61 = phi i32 [ %42, %41 ], [ %52, %51 ], [ %57, %53 ]
  %62 = add i32 %61, 1
  %63 = call i32 @llvm.umin.i32(i32 %62, i32 %34)
  store ptr %0, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 384), align 128
  store ptr %1, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 392), align 8
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  store i32 %63, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %64 = shl i32 %63, 4
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 408), align 8
  store i32 %64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 416), align 32
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 420), align 4
  store atomic i32 0, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428) seq_cst, align 4
  %65 = icmp eq i32 %63, 0
  br i1 %65, label %68, label %66

66:                                               ; preds = %60
  %67 = zext i32 %63 to i64
  br label %153

68:                                               ; preds = %153, %60
  %69 = call i32 @sched_getcpu()
  %70 = add nsw i32 %69, 1
  store atomic i32 %70, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 264) seq_cst, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %7)
  %71 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %7)
  %72 = load i64, ptr %7, align 8
  %73 = mul nsw i64 %72, 1000000000
  %74 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %75 = load i64, ptr %74, align 8
  %76 = add nsw i64 %73, %75
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %7)
  store atomic i64 %76, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 272) seq_cst, align 16
  store atomic i64 0, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 280) seq_cst, align 8
  store atomic i32 -2147483648, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %77 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256), i32 1 seq_cst, align 128
  %78 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260) seq_cst, align 4
  %79 = icmp eq i32 %78, 0
  br i1 %79, label %84, label %80

80:                                               ; preds = %68
  %81 = call i32 @pthread_mutex_lock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %82 = call i32 @pthread_cond_broadcast(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 496))
  %83 = call i32 @pthread_mutex_unlock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  br label %84

84:                                               ; preds = %68, %80
  %85 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %86 = icmp eq i32 %85, 0
  br i1 %86, label %122, label %87

87:                                               ; preds = %84
  %88 = zext i32 %85 to i64
  br label %89

89:                                               ; preds = %87, %119
  %90 = phi i64 [ 0, %87 ], [ %120, %119 ]
  %91 = getelementptr inbounds nuw [256 x %struct.share], ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 640), i64 0, i64 %90
  %92 = getelementptr inbounds nuw i8, ptr %91, i64 4
  %93 = load atomic i32, ptr %91 seq_cst, align 128
  %94 = load i32, ptr %92, align 4
  %95 = icmp ult i32 %93, %94
  br i1 %95, label %96, label %119

96:                                               ; preds = %89, %115
  %97 = atomicrmw add ptr %91, i32 1 seq_cst, align 128
  %98 = load i32, ptr %92, align 4
  %99 = icmp ult i32 %97, %98
  br i1 %99, label %100, label %115

100:                                              ; preds = %96
  %101 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 384), align 128
  %102 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 392), align 8
  %103 = call i32 %101(i32 noundef %97, ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 408), ptr noundef %102)
  %104 = icmp eq i32 %103, 0
  br i1 %104, label %115, label %105

105:                                              ; preds = %100
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %6)
  store ptr null, ptr %6, align 8
  call void @TVMFFIErrorMoveFromRaised(ptr noundef nonnull %6)
  %106 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428), i32 1 seq_cst, align 4
  %107 = icmp eq i32 %106, 0
  %108 = load ptr, ptr %6, align 8
  br i1 %107, label %109, label %110

109:                                              ; preds = %105
  store ptr %108, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  br label %114

110:                                              ; preds = %105
  %111 = icmp eq ptr %108, null
  br i1 %111, label %114, label %112

112:                                              ; preds = %110
  %113 = call i32 @TVMFFIObjectDecRef(ptr noundef nonnull %108)
  br label %114

114:                                              ; preds = %112, %110, %109
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6)
  br label %115

115:                                              ; preds = %114, %100, %96
  %116 = load atomic i32, ptr %91 seq_cst, align 128
  %117 = load i32, ptr %92, align 4
  %118 = icmp ult i32 %116, %117
  br i1 %118, label %96, label %119

119:                                              ; preds = %115, %89
  %120 = add nuw nsw i64 %90, 1
  %121 = icmp eq i64 %120, %88
  br i1 %121, label %122, label %89

122:                                              ; preds = %119, %84
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5)
  %123 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5)
  %124 = load i64, ptr %5, align 8
  %125 = mul nsw i64 %124, 1000000000
  %126 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %127 = load i64, ptr %126, align 8
  %128 = add nsw i64 %125, %127
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5)
  %129 = add nsw i64 %128, 1000000
  store atomic i64 %128, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 280) seq_cst, align 8
  %130 = atomicrmw and ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 2147483647 seq_cst, align 128
  %131 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %132 = icmp eq i32 %131, 0
  br i1 %132, label %147, label %133

133:                                              ; preds = %122
  %134 = getelementptr inbounds nuw i8, ptr %4, i64 8
  br label %135

135:                                              ; preds = %144, %133
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4)
  %136 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %4)
  %137 = load i64, ptr %4, align 8
  %138 = mul nsw i64 %137, 1000000000
  %139 = load i64, ptr %134, align 8
  %140 = add nsw i64 %138, %139
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4)
  %141 = icmp sgt i64 %140, %129
  br i1 %141, label %142, label %144

142:                                              ; preds = %135
  %143 = call i32 @sched_yield()
  br label %144

144:                                              ; preds = %142, %135
  %145 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %146 = icmp eq i32 %145, 0
  br i1 %146, label %147, label %135

147:                                              ; preds = %144, %122
  %148 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428) seq_cst, align 4
  %149 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  store atomic i32 0, ptr @ansor_deploy_pool_1 seq_cst, align 128
  %150 = icmp ne i32 %148, 0
  %151 = icmp ne ptr %149, null
  %152 = select i1 %150, i1 %151, i1 false
  br i1 %152, label %163, label %165

153:                                              ; preds = %66, %153
  %154 = phi i64 [ 0, %66 ], [ %155, %153 ]
  %155 = add nuw nsw i64 %154, 1
  %156 = trunc nuw i64 %155 to i32
  %157 = shl i32 %156, 4
  %158 = getelementptr inbounds nuw [256 x %struct.share], ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 640), i64 0, i64 %154
  %159 = getelementptr inbounds nuw i8, ptr %158, i64 4
  store i32 %157, ptr %159, align 4
  %160 = trunc nuw i64 %154 to i32
  %161 = shl i32 %160, 4
  store atomic i32 %161, ptr %158 seq_cst, align 128
  %162 = icmp eq i64 %155, %67
  br i1 %162, label %68, label %153

163:                                              ; preds = %147
  call void @TVMFFIErrorSetRaised(ptr noundef nonnull %149)
  %164 = call i32 @TVMFFIObjectDecRef(ptr noundef nonnull %149)
  br label %165

165:                                              ; preds = %163, %147
  %166 = sext i1 %150 to i32
  br label %167

167:                                              ; preds = %165, %39
  %168 = phi i32 [ %40, %39 ], [ %166, %165 ]
  ret i32 %168
}

declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture)

declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg)

declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg)

declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture)

define internal fastcc void @work(i32 noundef %0) {
  %2 = alloca ptr, align 8
  %3 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %4 = icmp eq i32 %3, 0
  br i1 %4, label %5, label %6

5:                                                ; preds = %39, %1
  ret void

6:                                                ; preds = %1, %39
  %7 = phi i32 [ %40, %39 ], [ 0, %1 ]
  %8 = add i32 %7, %0
  %9 = urem i32 %8, %3
  %10 = zext i32 %9 to i64
  %11 = getelementptr inbounds nuw [256 x %struct.share], ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 640), i64 0, i64 %10
  %12 = getelementptr inbounds nuw i8, ptr %11, i64 4
  %13 = load atomic i32, ptr %11 seq_cst, align 128
  %14 = load i32, ptr %12, align 4
  %15 = icmp ult i32 %13, %14
  br i1 %15, label %16, label %39

16:                                               ; preds = %6, %35
  %17 = atomicrmw add ptr %11, i32 1 seq_cst, align 128
  %18 = load i32, ptr %12, align 4
  %19 = icmp ult i32 %17, %18
  br i1 %19, label %20, label %35

20:                                               ; preds = %16
  %21 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 384), align 128
  %22 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 392), align 8
  %23 = call i32 %21(i32 noundef %17, ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 408), ptr noundef %22)
  %24 = icmp eq i32 %23, 0
  br i1 %24, label %35, label %25

25:                                               ; preds = %20
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %2)
  store ptr null, ptr %2, align 8
  call void @TVMFFIErrorMoveFromRaised(ptr noundef nonnull %2)
  %26 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428), i32 1 seq_cst, align 4
  %27 = icmp eq i32 %26, 0
  %28 = load ptr, ptr %2, align 8
  br i1 %27, label %29, label %30

29:                                               ; preds = %25
  store ptr %28, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  br label %34

30:                                               ; preds = %25
  %31 = icmp eq ptr %28, null
  br i1 %31, label %34, label %32

32:                                               ; preds = %30
  %33 = call i32 @TVMFFIObjectDecRef(ptr noundef nonnull %28)
  br label %34

34:                                               ; preds = %29, %30, %32
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %2)
  br label %35

35:                                               ; preds = %34, %20, %16
  %36 = load atomic i32, ptr %11 seq_cst, align 128
  %37 = load i32, ptr %12, align 4
  %38 = icmp ult i32 %36, %37
  br i1 %38, label %16, label %39

39:                                               ; preds = %35, %6
  %40 = add nuw i32 %7, 1
  %41 = icmp eq i32 %40, %3
  br i1 %41, label %5, label %6
}

declare i32 @sched_getaffinity(i32 noundef, i64 noundef, ptr noundef)

declare i64 @llvm.ctpop.i64(i64)

declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef)

define internal noalias noundef nonnull ptr @worker(ptr noundef %0) {
  %2 = alloca %struct.timespec, align 8
  %3 = alloca %struct.timespec, align 8
  %4 = alloca %struct.timespec, align 8
  %5 = alloca %struct.timespec, align 8
  %6 = alloca [128 x i64], align 16
  %7 = alloca %struct.timespec, align 8
  %8 = alloca %struct.timespec, align 8
  %9 = alloca [128 x i64], align 16
  %10 = ptrtoint ptr %0 to i64
  %11 = trunc i64 %10 to i32
  call void @llvm.lifetime.start.p0(i64 1024, ptr nonnull %9)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(1024) %9, i8 0, i64 1024, i1 false)
  %12 = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 1024, ptr noundef nonnull %9)
  %13 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %14 = add i32 %13, -1
  %15 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %16 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %17 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %18 = getelementptr inbounds nuw i8, ptr %4, i64 8
  %19 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %20 = getelementptr inbounds nuw i8, ptr %2, i64 8
  br label %21

21:                                               ; preds = %105, %1
  %22 = phi i64 [ 0, %1 ], [ %106, %105 ]
  %23 = phi i32 [ %14, %1 ], [ %107, %105 ]
  br label %24

24:                                               ; preds = %21, %143
  %25 = phi i64 [ %89, %143 ], [ %22, %21 ]
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %8)
  %26 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %8)
  %27 = load i64, ptr %8, align 8
  %28 = mul nsw i64 %27, 1000000000
  %29 = load i64, ptr %15, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %8)
  %30 = add i64 %29, 100000
  %31 = add i64 %30, %28
  %32 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %33 = icmp eq i32 %32, %23
  br i1 %33, label %34, label %51

34:                                               ; preds = %24, %48
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %7)
  %35 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %7)
  %36 = load i64, ptr %7, align 8
  %37 = mul nsw i64 %36, 1000000000
  %38 = load i64, ptr %16, align 8
  %39 = add nsw i64 %37, %38
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %7)
  %40 = icmp slt i64 %39, %31
  br i1 %40, label %41, label %91

41:                                               ; preds = %34
  %42 = call i32 @sched_getcpu()
  %43 = icmp sgt i32 %42, -1
  br i1 %43, label %44, label %48

44:                                               ; preds = %41
  %45 = add nuw i32 %42, 1
  %46 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 264) seq_cst, align 8
  %47 = icmp eq i32 %45, %46
  br i1 %47, label %91, label %48

48:                                               ; preds = %44, %41
  %49 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %50 = icmp eq i32 %49, %23
  br i1 %50, label %34, label %51

51:                                               ; preds = %48, %24
  %52 = phi i32 [ %32, %24 ], [ %49, %48 ]
  %53 = call i32 @sched_getcpu()
  %54 = icmp sgt i32 %53, -1
  br i1 %54, label %55, label %88

55:                                               ; preds = %51
  %56 = add nuw i32 %53, 1
  %57 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 264) seq_cst, align 8
  %58 = icmp eq i32 %56, %57
  br i1 %58, label %59, label %88

59:                                               ; preds = %55
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5)
  %60 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5)
  %61 = load i64, ptr %5, align 8
  %62 = mul nsw i64 %61, 1000000000
  %63 = load i64, ptr %17, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5)
  %64 = sub i64 %63, %25
  %65 = add i64 %64, %62
  %66 = icmp slt i64 %65, 10000000
  br i1 %66, label %91, label %67

67:                                               ; preds = %59
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4)
  %68 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %4)
  %69 = load i64, ptr %4, align 8
  %70 = mul nsw i64 %69, 1000000000
  %71 = load i64, ptr %18, align 8
  %72 = add nsw i64 %70, %71
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4)
  call void @llvm.lifetime.start.p0(i64 1024, ptr nonnull %6)
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 16 dereferenceable(1024) %6, ptr noundef nonnull readonly align 16 dereferenceable(1024) %9, i64 1024, i1 false)
  %73 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 264) seq_cst, align 8
  %74 = add i32 %73, -1
  %75 = and i32 %74, 63
  %76 = zext nneg i32 %75 to i64
  %77 = shl nuw i64 1, %76
  %78 = xor i64 %77, -1
  %79 = lshr i32 %74, 6
  %80 = and i32 %79, 127
  %81 = zext nneg i32 %80 to i64
  %82 = getelementptr inbounds nuw [128 x i64], ptr %6, i64 0, i64 %81
  %83 = load i64, ptr %82, align 8
  %84 = and i64 %83, %78
  store i64 %84, ptr %82, align 8
  %85 = call i32 @sched_setaffinity(i32 noundef 0, i64 noundef 1024, ptr noundef nonnull %6)
  %86 = freeze i32 %85
  %87 = icmp eq i32 %86, 0
  call void @llvm.lifetime.end.p0(i64 1024, ptr nonnull %6)
  br i1 %87, label %88, label %91

88:                                               ; preds = %51, %55, %67
  %89 = phi i64 [ %72, %67 ], [ %25, %55 ], [ %25, %51 ]
  %90 = icmp eq i32 %52, %23
  br i1 %90, label %91, label %108

91:                                               ; preds = %67, %59, %88, %44, %34
  %92 = phi i32 [ %23, %34 ], [ %23, %44 ], [ %52, %67 ], [ %52, %59 ], [ %23, %88 ]
  %93 = phi i64 [ %25, %34 ], [ %25, %44 ], [ %72, %67 ], [ %25, %59 ], [ %89, %88 ]
  %94 = call i32 @pthread_mutex_lock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %95 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260), i32 1 seq_cst, align 4
  %96 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %97 = icmp eq i32 %96, %92
  br i1 %97, label %98, label %102

98:                                               ; preds = %91, %98
  %99 = call i32 @pthread_cond_wait(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 496), ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %100 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %101 = icmp eq i32 %100, %92
  br i1 %101, label %98, label %102

102:                                              ; preds = %98, %91
  %103 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260), i32 -1 seq_cst, align 4
  %104 = call i32 @pthread_mutex_unlock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  br label %105

105:                                              ; preds = %135, %137, %143, %102
  %106 = phi i64 [ %93, %102 ], [ %89, %143 ], [ %89, %137 ], [ %89, %135 ]
  %107 = phi i32 [ %92, %102 ], [ %52, %143 ], [ %52, %137 ], [ %52, %135 ]
  br label %21

108:                                              ; preds = %88
  %109 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %110 = icmp sgt i32 %109, -1
  br i1 %110, label %143, label %111

111:                                              ; preds = %108
  %112 = add nsw i32 %109, 1
  %113 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 %109, i32 %112 seq_cst seq_cst, align 128
  %114 = extractvalue { i32, i1 } %113, 1
  br i1 %114, label %115, label %143

115:                                              ; preds = %111
  %116 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %117 = icmp ugt i32 %116, %11
  br i1 %117, label %118, label %119

118:                                              ; preds = %115
  call fastcc void @work(i32 noundef %11)
  br label %119

119:                                              ; preds = %118, %115
  %120 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 280) seq_cst, align 8
  %121 = icmp eq i64 %120, 0
  br i1 %121, label %135, label %122

122:                                              ; preds = %119
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3)
  %123 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3)
  %124 = load i64, ptr %3, align 8
  %125 = mul nsw i64 %124, 1000000000
  %126 = load i64, ptr %19, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3)
  %127 = sub i64 %126, %120
  %128 = add i64 %127, %125
  %129 = icmp sgt i64 %128, 300000
  br i1 %129, label %130, label %135

130:                                              ; preds = %122
  %131 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 272) seq_cst, align 16
  %132 = sub nsw i64 %120, %131
  %133 = sdiv i64 %132, 2
  %134 = icmp sgt i64 %128, %133
  br i1 %134, label %137, label %135

135:                                              ; preds = %130, %122, %119
  %136 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 -1 seq_cst, align 128
  br label %105

137:                                              ; preds = %130
  %138 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 -1 seq_cst, align 128
  %139 = mul nuw nsw i64 %128, 10
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2)
  %140 = udiv i64 %128, 100000000
  store i64 %140, ptr %2, align 8
  %141 = urem i64 %139, 1000000000
  store i64 %141, ptr %20, align 8
  %142 = call i32 @nanosleep(ptr noundef nonnull %2, ptr noundef null)
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  br label %105

143:                                              ; preds = %111, %108
  %144 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %145 = icmp sgt i32 %144, -1
  br i1 %145, label %105, label %24
}

declare i32 @pthread_detach(i64 noundef)

declare i32 @clock_gettime(i32 noundef, ptr noundef)

declare i32 @sched_getcpu()

declare i32 @sched_setaffinity(i32 noundef, i64 noundef, ptr noundef)

declare i32 @pthread_mutex_lock(ptr noundef)

declare i32 @pthread_cond_wait(ptr noundef, ptr noundef)

declare i32 @pthread_mutex_unlock(ptr noundef)

declare i32 @nanosleep(ptr noundef, ptr noundef)

declare i32 @pthread_cond_broadcast(ptr noundef)

declare void @TVMFFIErrorMoveFromRaised(ptr noundef)

declare i32 @TVMFFIObjectDecRef(ptr noundef)

declare i32 @sched_yield()

declare void @TVMFFIErrorSetRaised(ptr noundef)

declare i32 @llvm.smin.i32(i32, i32)

declare i32 @llvm.umin.i32(i32, i32)
