; Made by docs/make_thread_pool.py of thread_pool.c, bacf217051d37ee025581a9941890d226ba34a5ecd28938a5038863942d82ced
module asm ".pushsection .bss.ansor_deploy_pool, \22aw\22, %nobits"
module asm ".type ansor_deploy_pool_1, %gnu_unique_object"
module asm ".size ansor_deploy_pool_1, 33408"
module asm ".p2align 7"
module asm "ansor_deploy_pool_1: .zero 33408"
module asm ".popsection"

%struct.pool = type { i32, i32, [120 x i8], i32, [124 x i8], i32, i32, i32, [116 x i8], ptr, ptr, ptr, %struct.environment, i32, i32, %struct.opaque, %struct.opaque, [80 x i8], [256 x %struct.share] }
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
  %7 = alloca i64, align 8
  %8 = alloca %struct.environment, align 8
  %9 = alloca [128 x i64], align 16
  %10 = load atomic i32, ptr @wanted.there seq_cst, align 4
  %11 = icmp eq i32 %10, 0
  br i1 %11, label %12, label %27

12:                                               ; preds = %3
  call void @llvm.lifetime.start.p0(i64 1024, ptr nonnull %9)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(1024) %9, i8 0, i64 1024, i1 false)
  %13 = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 1024, ptr noundef nonnull %9)
  %14 = icmp slt i32 %13, 0
  br i1 %14, label %25, label %15

15:                                               ; preds = %12, %15
  %16 = phi i64 [ %23, %15 ], [ 0, %12 ]
  %17 = phi i32 [ %22, %15 ], [ 0, %12 ]
  %18 = getelementptr inbounds nuw [128 x i64], ptr %9, i64 0, i64 %16
  %19 = load i64, ptr %18, align 8
  %20 = call range(i64 0, 65) i64 @llvm.ctpop.i64(i64 %19)
  %21 = trunc nuw nsw i64 %20 to i32
  %22 = add nuw nsw i32 %17, %21
  %23 = add nuw nsw i64 %16, 1
  %24 = icmp eq i64 %23, 128
  br i1 %24, label %25, label %15

25:                                               ; preds = %15, %12
  %26 = phi i32 [ 256, %12 ], [ %22, %15 ]
  call void @llvm.lifetime.end.p0(i64 1024, ptr nonnull %9)
  store atomic i32 %26, ptr @wanted.there seq_cst, align 4
  br label %27

27:                                               ; preds = %25, %3
  %28 = phi i32 [ %26, %25 ], [ %10, %3 ]
  %29 = load atomic i32, ptr @own_threads seq_cst, align 4
  %30 = icmp slt i32 %29, 1
  br i1 %30, label %38, label %31

31:                                               ; preds = %27
  %32 = call i32 @llvm.smin.i32(i32 %28, i32 %29)
  %33 = call i32 @llvm.smin.i32(i32 %32, i32 256)
  %34 = icmp eq i32 %32, 1
  br i1 %34, label %38, label %35

35:                                               ; preds = %31
  %36 = cmpxchg ptr @ansor_deploy_pool_1, i32 0, i32 1 seq_cst seq_cst, align 128
  %37 = extractvalue { i32, i1 } %36, 1
  br i1 %37, label %40, label %38

38:                                               ; preds = %27, %35, %31
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %8)
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %8, ptr noundef nonnull align 8 dereferenceable(16) @__const.alone.one, i64 16, i1 false)
  %39 = call i32 %0(i32 noundef 0, ptr noundef nonnull %8, ptr noundef %1)
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %8)
  br label %160

40:                                               ; preds = %35
  %41 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 4), align 4
  %42 = add i32 %41, 1
  %43 = icmp ult i32 %42, %33
  br i1 %43, label %44, label %59

44:                                               ; preds = %40, %52
  %45 = phi i32 [ %57, %52 ], [ %42, %40 ]
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %7)
  %46 = zext i32 %45 to i64
  %47 = inttoptr i64 %46 to ptr
  %48 = call i32 @pthread_create(ptr noundef nonnull %7, ptr noundef null, ptr noundef nonnull @worker, ptr noundef %47)
  %49 = icmp eq i32 %48, 0
  br i1 %49, label %52, label %50

50:                                               ; preds = %44
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7)
  %51 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 4), align 4
  br label %59

52:                                               ; preds = %44
  %53 = load i64, ptr %7, align 8
  %54 = call i32 @pthread_detach(i64 noundef %53)
  %55 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 4), align 4
  %56 = add i32 %55, 1
  store i32 %56, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 4), align 4
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7)
  %57 = add i32 %55, 2
  %58 = icmp ult i32 %57, %33
  br i1 %58, label %44, label %59

59:                                               ; preds = %52, %40, %50
  %60 = phi i32 [ %41, %40 ], [ %51, %50 ], [ %56, %52 ]
  %61 = add i32 %60, 1
  %62 = call i32 @llvm.umin.i32(i32 %61, i32 %33)
  store ptr %0, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 384), align 128
  store ptr %1, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 392), align 8
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  store i32 %62, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %63 = shl i32 %62, 4
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 408), align 8
  store i32 %63, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 416), align 32
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 420), align 4
  store atomic i32 0, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428) seq_cst, align 4
  %64 = icmp eq i32 %62, 0
  br i1 %64, label %67, label %65

65:                                               ; preds = %59
  %66 = zext i32 %62 to i64
  br label %146

67:                                               ; preds = %146, %59
  %68 = call i32 @sched_getcpu()
  %69 = add nsw i32 %68, 1
  store atomic i32 %69, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 264) seq_cst, align 8
  store atomic i32 -2147483648, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %70 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256), i32 1 seq_cst, align 128
  %71 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260) seq_cst, align 4
  %72 = icmp eq i32 %71, 0
  br i1 %72, label %77, label %73

73:                                               ; preds = %67
  %74 = call i32 @pthread_mutex_lock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %75 = call i32 @pthread_cond_broadcast(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 496))
  %76 = call i32 @pthread_mutex_unlock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  br label %77

77:                                               ; preds = %67, %73
  %78 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %79 = icmp eq i32 %78, 0
  br i1 %79, label %115, label %80

80:                                               ; preds = %77
  %81 = zext i32 %78 to i64
  br label %82

82:                                               ; preds = %80, %112
  %83 = phi i64 [ 0, %80 ], [ %113, %112 ]
  %84 = getelementptr inbounds nuw [256 x %struct.share], ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 640), i64 0, i64 %83
  %85 = getelementptr inbounds nuw i8, ptr %84, i64 4
  %86 = load atomic i32, ptr %84 seq_cst, align 128
  %87 = load i32, ptr %85, align 4
  %88 = icmp ult i32 %86, %87
  br i1 %88, label %89, label %112

89:                                               ; preds = %82, %108
  %90 = atomicrmw add ptr %84, i32 1 seq_cst, align 128
  %91 = load i32, ptr %85, align 4
  %92 = icmp ult i32 %90, %91
  br i1 %92, label %93, label %108

93:                                               ; preds = %89
  %94 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 384), align 128
  %95 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 392), align 8
  %96 = call i32 %94(i32 noundef %90, ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 408), ptr noundef %95)
  %97 = icmp eq i32 %96, 0
  br i1 %97, label %108, label %98

98:                                               ; preds = %93
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %6)
  store ptr null, ptr %6, align 8
  call void @TVMFFIErrorMoveFromRaised(ptr noundef nonnull %6)
  %99 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428), i32 1 seq_cst, align 4
  %100 = icmp eq i32 %99, 0
  %101 = load ptr, ptr %6, align 8
  br i1 %100, label %102, label %103

102:                                              ; preds = %98
  store ptr %101, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  br label %107

103:                                              ; preds = %98
  %104 = icmp eq ptr %101, null
  br i1 %104, label %107, label %105

105:                                              ; preds = %103
  %106 = call i32 @TVMFFIObjectDecRef(ptr noundef nonnull %101)
  br label %107

107:                                              ; preds = %105, %103, %102
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6)
  br label %108

108:                                              ; preds = %107, %93, %89
  %109 = load atomic i32, ptr %84 seq_cst, align 128
  %110 = load i32, ptr %85, align 4
  %111 = icmp ult i32 %109, %110
  br i1 %111, label %89, label %112

112:                                              ; preds = %108, %82
  %113 = add nuw nsw i64 %83, 1
  %114 = icmp eq i64 %113, %81
  br i1 %114, label %115, label %82

115:                                              ; preds = %112, %77
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5)
  %116 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5)
  %117 = load i64, ptr %5, align 8
  %118 = mul nsw i64 %117, 1000000000
  %119 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %120 = load i64, ptr %119, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5)
  %121 = add i64 %120, 1000000
  %122 = add i64 %121, %118
  %123 = atomicrmw and ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 2147483647 seq_cst, align 128
  %124 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %125 = icmp eq i32 %124, 0
  br i1 %125, label %140, label %126

126:                                              ; preds = %115
  %127 = getelementptr inbounds nuw i8, ptr %4, i64 8
  br label %128

128:                                              ; preds = %137, %126
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4)
  %129 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %4)
  %130 = load i64, ptr %4, align 8
  %131 = mul nsw i64 %130, 1000000000
  %132 = load i64, ptr %127, align 8
  %133 = add nsw i64 %131, %132
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4)
  %134 = icmp sgt i64 %133, %122
  br i1 %134, label %135, label %137

135:                                              ; preds = %128
  %136 = call i32 @sched_yield()
  br label %137

137:                                              ; preds = %135, %128
  %138 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %139 = icmp eq i32 %138, 0
  br i1 %139, label %140, label %128

140:                                              ; preds = %137, %115
  %141 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428) seq_cst, align 4
  %142 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  store atomic i32 0, ptr @ansor_deploy_pool_1 seq_cst, align 128
  %143 = icmp ne i32 %141, 0
  %144 = icmp ne ptr %142, null
  %145 = select i1 %143, i1 %144, i1 false
  br i1 %145, label %156, label %158

146:                                              ; preds = %65, %146
  %147 = phi i64 [ 0, %65 ], [ %148, %146 ]
  %148 = add nuw nsw i64 %147, 1
  %149 = trunc nuw i64 %148 to i32
  %150 = shl i32 %149, 4
  %151 = getelementptr inbounds nuw [256 x %struct.share], ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 640), i64 0, i64 %147
  %152 = getelementptr inbounds nuw i8, ptr %151, i64 4
  store i32 %150, ptr %152, align 4
  %153 = trunc nuw i64 %147 to i32
  %154 = shl i32 %153, 4
  store atomic i32 %154, ptr %151 seq_cst, align 128
  %155 = icmp eq i64 %148, %66
  br i1 %155, label %67, label %146

156:                                              ; preds = %140
  call void @TVMFFIErrorSetRaised(ptr noundef nonnull %142)
  %157 = call i32 @TVMFFIObjectDecRef(ptr noundef nonnull %142)
  br label %158

158:                                              ; preds = %156, %140
  %159 = sext i1 %143 to i32
  br label %160

160:                                              ; preds = %158, %38
  %161 = phi i32 [ %39, %38 ], [ %159, %158 ]
  ret i32 %161
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
  %4 = alloca [128 x i64], align 16
  %5 = alloca %struct.timespec, align 8
  %6 = alloca %struct.timespec, align 8
  %7 = alloca [128 x i64], align 16
  %8 = ptrtoint ptr %0 to i64
  %9 = trunc i64 %8 to i32
  call void @llvm.lifetime.start.p0(i64 1024, ptr nonnull %7)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(1024) %7, i8 0, i64 1024, i1 false)
  %10 = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 1024, ptr noundef nonnull %7)
  %11 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %12 = add i32 %11, -1
  %13 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %14 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %15 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %16 = getelementptr inbounds nuw i8, ptr %2, i64 8
  br label %17

17:                                               ; preds = %101, %1
  %18 = phi i64 [ 0, %1 ], [ %102, %101 ]
  %19 = phi i32 [ %12, %1 ], [ %103, %101 ]
  br label %20

20:                                               ; preds = %17, %117
  %21 = phi i64 [ %85, %117 ], [ %18, %17 ]
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6)
  %22 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %6)
  %23 = load i64, ptr %6, align 8
  %24 = mul nsw i64 %23, 1000000000
  %25 = load i64, ptr %13, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6)
  %26 = add i64 %25, 100000
  %27 = add i64 %26, %24
  %28 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %29 = icmp eq i32 %28, %19
  br i1 %29, label %30, label %47

30:                                               ; preds = %20, %44
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5)
  %31 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5)
  %32 = load i64, ptr %5, align 8
  %33 = mul nsw i64 %32, 1000000000
  %34 = load i64, ptr %14, align 8
  %35 = add nsw i64 %33, %34
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5)
  %36 = icmp slt i64 %35, %27
  br i1 %36, label %37, label %87

37:                                               ; preds = %30
  %38 = call i32 @sched_getcpu()
  %39 = icmp sgt i32 %38, -1
  br i1 %39, label %40, label %44

40:                                               ; preds = %37
  %41 = add nuw i32 %38, 1
  %42 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 264) seq_cst, align 8
  %43 = icmp eq i32 %41, %42
  br i1 %43, label %87, label %44

44:                                               ; preds = %40, %37
  %45 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %46 = icmp eq i32 %45, %19
  br i1 %46, label %30, label %47

47:                                               ; preds = %44, %20
  %48 = phi i32 [ %28, %20 ], [ %45, %44 ]
  %49 = call i32 @sched_getcpu()
  %50 = icmp sgt i32 %49, -1
  br i1 %50, label %51, label %84

51:                                               ; preds = %47
  %52 = add nuw i32 %49, 1
  %53 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 264) seq_cst, align 8
  %54 = icmp eq i32 %52, %53
  br i1 %54, label %55, label %84

55:                                               ; preds = %51
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3)
  %56 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3)
  %57 = load i64, ptr %3, align 8
  %58 = mul nsw i64 %57, 1000000000
  %59 = load i64, ptr %15, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3)
  %60 = sub i64 %59, %21
  %61 = add i64 %60, %58
  %62 = icmp slt i64 %61, 10000000
  br i1 %62, label %87, label %63

63:                                               ; preds = %55
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2)
  %64 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %2)
  %65 = load i64, ptr %2, align 8
  %66 = mul nsw i64 %65, 1000000000
  %67 = load i64, ptr %16, align 8
  %68 = add nsw i64 %66, %67
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  call void @llvm.lifetime.start.p0(i64 1024, ptr nonnull %4)
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 16 dereferenceable(1024) %4, ptr noundef nonnull readonly align 16 dereferenceable(1024) %7, i64 1024, i1 false)
  %69 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 264) seq_cst, align 8
  %70 = add i32 %69, -1
  %71 = and i32 %70, 63
  %72 = zext nneg i32 %71 to i64
  %73 = shl nuw i64 1, %72
  %74 = xor i64 %73, -1
  %75 = lshr i32 %70, 6
  %76 = and i32 %75, 127
  %77 = zext nneg i32 %76 to i64
  %78 = getelementptr inbounds nuw [128 x i64], ptr %4, i64 0, i64 %77
  %79 = load i64, ptr %78, align 8
  %80 = and i64 %79, %74
  store i64 %80, ptr %78, align 8
  %81 = call i32 @sched_setaffinity(i32 noundef 0, i64 noundef 1024, ptr noundef nonnull %4)
  %82 = freeze i32 %81
  %83 = icmp eq i32 %82, 0
  call void @llvm.lifetime.end.p0(i64 1024, ptr nonnull %4)
  br i1 %83, label %84, label %87

84:                                               ; preds = %47, %51, %63
  %85 = phi i64 [ %68, %63 ], [ %21, %51 ], [ %21, %47 ]
  %86 = icmp eq i32 %48, %19
  br i1 %86, label %87, label %104

87:                                               ; preds = %63, %55, %84, %40, %30
  %88 = phi i32 [ %19, %30 ], [ %19, %40 ], [ %48, %63 ], [ %48, %55 ], [ %19, %84 ]
  %89 = phi i64 [ %21, %30 ], [ %21, %40 ], [ %68, %63 ], [ %21, %55 ], [ %85, %84 ]
  %90 = call i32 @pthread_mutex_lock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %91 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260), i32 1 seq_cst, align 4
  %92 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %93 = icmp eq i32 %92, %88
  br i1 %93, label %94, label %98

94:                                               ; preds = %87, %94
  %95 = call i32 @pthread_cond_wait(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 496), ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %96 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %97 = icmp eq i32 %96, %88
  br i1 %97, label %94, label %98

98:                                               ; preds = %94, %87
  %99 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260), i32 -1 seq_cst, align 4
  %100 = call i32 @pthread_mutex_unlock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  br label %101

101:                                              ; preds = %115, %117, %98
  %102 = phi i64 [ %89, %98 ], [ %85, %117 ], [ %85, %115 ]
  %103 = phi i32 [ %88, %98 ], [ %48, %117 ], [ %48, %115 ]
  br label %17

104:                                              ; preds = %84
  %105 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %106 = icmp sgt i32 %105, -1
  br i1 %106, label %117, label %107

107:                                              ; preds = %104
  %108 = add nsw i32 %105, 1
  %109 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 %105, i32 %108 seq_cst seq_cst, align 128
  %110 = extractvalue { i32, i1 } %109, 1
  br i1 %110, label %111, label %117

111:                                              ; preds = %107
  %112 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %113 = icmp ugt i32 %112, %9
  br i1 %113, label %114, label %115

114:                                              ; preds = %111
  call fastcc void @work(i32 noundef %9)
  br label %115

115:                                              ; preds = %111, %114
  %116 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 -1 seq_cst, align 128
  br label %101

117:                                              ; preds = %107, %104
  %118 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %119 = icmp sgt i32 %118, -1
  br i1 %119, label %101, label %20
}

declare i32 @pthread_detach(i64 noundef)

declare i32 @clock_gettime(i32 noundef, ptr noundef)

declare i32 @sched_getcpu()

declare i32 @sched_setaffinity(i32 noundef, i64 noundef, ptr noundef)

declare i32 @pthread_mutex_lock(ptr noundef)

declare i32 @pthread_cond_wait(ptr noundef, ptr noundef)

declare i32 @pthread_mutex_unlock(ptr noundef)

declare i32 @pthread_cond_broadcast(ptr noundef)

declare void @TVMFFIErrorMoveFromRaised(ptr noundef)

declare i32 @TVMFFIObjectDecRef(ptr noundef)

declare i32 @sched_yield()

declare void @TVMFFIErrorSetRaised(ptr noundef)

declare i32 @llvm.smin.i32(i32, i32)

declare i32 @llvm.umin.i32(i32, i32)
