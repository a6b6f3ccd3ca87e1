; Made by docs/make_thread_pool.py of thread_pool.c, 29ee505a6c8450c0bf4e23b9f5b41756df326b7678ffc7f9f9d1c8cae5ec7bfe
module asm ".pushsection .bss.ansor_deploy_pool, \22aw\22, %nobits"
module asm ".type ansor_deploy_pool_1, %gnu_unique_object"
module asm ".size ansor_deploy_pool_1, 33408"
module asm ".p2align 7"
module asm "ansor_deploy_pool_1: .zero 33408"
module asm ".popsection"

%struct.pool = type { i32, i32, [120 x i8], i32, [124 x i8], i32, i32, [120 x i8], ptr, ptr, ptr, %struct.environment, i32, i32, %struct.opaque, %struct.opaque, [80 x i8], [256 x %struct.share] }
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
  br label %158

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
  br label %144

67:                                               ; preds = %144, %59
  store atomic i32 -2147483648, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %68 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256), i32 1 seq_cst, align 128
  %69 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260) seq_cst, align 4
  %70 = icmp eq i32 %69, 0
  br i1 %70, label %75, label %71

71:                                               ; preds = %67
  %72 = call i32 @pthread_mutex_lock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %73 = call i32 @pthread_cond_broadcast(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 496))
  %74 = call i32 @pthread_mutex_unlock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  br label %75

75:                                               ; preds = %67, %71
  %76 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %77 = icmp eq i32 %76, 0
  br i1 %77, label %113, label %78

78:                                               ; preds = %75
  %79 = zext i32 %76 to i64
  br label %80

80:                                               ; preds = %78, %110
  %81 = phi i64 [ 0, %78 ], [ %111, %110 ]
  %82 = getelementptr inbounds nuw [256 x %struct.share], ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 640), i64 0, i64 %81
  %83 = getelementptr inbounds nuw i8, ptr %82, i64 4
  %84 = load atomic i32, ptr %82 seq_cst, align 128
  %85 = load i32, ptr %83, align 4
  %86 = icmp ult i32 %84, %85
  br i1 %86, label %87, label %110

87:                                               ; preds = %80, %106
  %88 = atomicrmw add ptr %82, i32 1 seq_cst, align 128
  %89 = load i32, ptr %83, align 4
  %90 = icmp ult i32 %88, %89
  br i1 %90, label %91, label %106

91:                                               ; preds = %87
  %92 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 384), align 128
  %93 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 392), align 8
  %94 = call i32 %92(i32 noundef %88, ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 408), ptr noundef %93)
  %95 = icmp eq i32 %94, 0
  br i1 %95, label %106, label %96

96:                                               ; preds = %91
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %6)
  store ptr null, ptr %6, align 8
  call void @TVMFFIErrorMoveFromRaised(ptr noundef nonnull %6)
  %97 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428), i32 1 seq_cst, align 4
  %98 = icmp eq i32 %97, 0
  %99 = load ptr, ptr %6, align 8
  br i1 %98, label %100, label %101

100:                                              ; preds = %96
  store ptr %99, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  br label %105

101:                                              ; preds = %96
  %102 = icmp eq ptr %99, null
  br i1 %102, label %105, label %103

103:                                              ; preds = %101
  %104 = call i32 @TVMFFIObjectDecRef(ptr noundef nonnull %99)
  br label %105

105:                                              ; preds = %103, %101, %100
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6)
  br label %106

106:                                              ; preds = %105, %91, %87
  %107 = load atomic i32, ptr %82 seq_cst, align 128
  %108 = load i32, ptr %83, align 4
  %109 = icmp ult i32 %107, %108
  br i1 %109, label %87, label %110

110:                                              ; preds = %106, %80
  %111 = add nuw nsw i64 %81, 1
  %112 = icmp eq i64 %111, %79
  br i1 %112, label %113, label %80

113:                                              ; preds = %110, %75
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5)
  %114 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5)
  %115 = load i64, ptr %5, align 8
  %116 = mul nsw i64 %115, 1000000000
  %117 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %118 = load i64, ptr %117, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5)
  %119 = add i64 %118, 1000000
  %120 = add i64 %119, %116
  %121 = atomicrmw and ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 2147483647 seq_cst, align 128
  %122 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %123 = icmp eq i32 %122, 0
  br i1 %123, label %138, label %124

124:                                              ; preds = %113
  %125 = getelementptr inbounds nuw i8, ptr %4, i64 8
  br label %126

126:                                              ; preds = %135, %124
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4)
  %127 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %4)
  %128 = load i64, ptr %4, align 8
  %129 = mul nsw i64 %128, 1000000000
  %130 = load i64, ptr %125, align 8
  %131 = add nsw i64 %129, %130
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4)
  %132 = icmp sgt i64 %131, %120
  br i1 %132, label %133, label %135

133:                                              ; preds = %126
  %134 = call i32 @sched_yield()
  br label %135

135:                                              ; preds = %133, %126
  %136 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %137 = icmp eq i32 %136, 0
  br i1 %137, label %138, label %126

138:                                              ; preds = %135, %113
  %139 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 428) seq_cst, align 4
  %140 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 400), align 16
  store atomic i32 0, ptr @ansor_deploy_pool_1 seq_cst, align 128
  %141 = icmp ne i32 %139, 0
  %142 = icmp ne ptr %140, null
  %143 = select i1 %141, i1 %142, i1 false
  br i1 %143, label %154, label %156

144:                                              ; preds = %65, %144
  %145 = phi i64 [ 0, %65 ], [ %146, %144 ]
  %146 = add nuw nsw i64 %145, 1
  %147 = trunc nuw i64 %146 to i32
  %148 = shl i32 %147, 4
  %149 = getelementptr inbounds nuw [256 x %struct.share], ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 640), i64 0, i64 %145
  %150 = getelementptr inbounds nuw i8, ptr %149, i64 4
  store i32 %148, ptr %150, align 4
  %151 = trunc nuw i64 %145 to i32
  %152 = shl i32 %151, 4
  store atomic i32 %152, ptr %149 seq_cst, align 128
  %153 = icmp eq i64 %146, %66
  br i1 %153, label %67, label %144

154:                                              ; preds = %138
  call void @TVMFFIErrorSetRaised(ptr noundef nonnull %140)
  %155 = call i32 @TVMFFIObjectDecRef(ptr noundef nonnull %140)
  br label %156

156:                                              ; preds = %154, %138
  %157 = sext i1 %141 to i32
  br label %158

158:                                              ; preds = %156, %38
  %159 = phi i32 [ %39, %38 ], [ %157, %156 ]
  ret i32 %159
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
  %4 = ptrtoint ptr %0 to i64
  %5 = trunc i64 %4 to i32
  %6 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %7 = add i32 %6, -1
  %8 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %9 = getelementptr inbounds nuw i8, ptr %2, i64 8
  br label %10

10:                                               ; preds = %58, %1
  %11 = phi i32 [ %20, %58 ], [ %7, %1 ]
  br label %12

12:                                               ; preds = %57, %10
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3)
  %13 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3)
  %14 = load i64, ptr %3, align 8
  %15 = mul nsw i64 %14, 1000000000
  %16 = load i64, ptr %8, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3)
  %17 = add i64 %16, 100000
  %18 = add i64 %17, %15
  br label %19

19:                                               ; preds = %22, %12
  %20 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %21 = icmp eq i32 %20, %11
  br i1 %21, label %22, label %41

22:                                               ; preds = %19
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2)
  %23 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %2)
  %24 = load i64, ptr %2, align 8
  %25 = mul nsw i64 %24, 1000000000
  %26 = load i64, ptr %9, align 8
  %27 = add nsw i64 %25, %26
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2)
  %28 = icmp slt i64 %27, %18
  br i1 %28, label %19, label %29

29:                                               ; preds = %22
  %30 = call i32 @pthread_mutex_lock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %31 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260), i32 1 seq_cst, align 4
  %32 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %33 = icmp eq i32 %32, %11
  br i1 %33, label %34, label %38

34:                                               ; preds = %29, %34
  %35 = call i32 @pthread_cond_wait(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 496), ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  %36 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 256) seq_cst, align 128
  %37 = icmp eq i32 %36, %11
  br i1 %37, label %34, label %38

38:                                               ; preds = %34, %29
  %39 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 260), i32 -1 seq_cst, align 4
  %40 = call i32 @pthread_mutex_unlock(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 432))
  br label %57

41:                                               ; preds = %19
  %42 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %43 = icmp sgt i32 %42, -1
  br i1 %43, label %54, label %44

44:                                               ; preds = %41
  %45 = add nsw i32 %42, 1
  %46 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 %42, i32 %45 seq_cst seq_cst, align 128
  %47 = extractvalue { i32, i1 } %46, 1
  br i1 %47, label %48, label %54

48:                                               ; preds = %44
  %49 = load i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 424), align 8
  %50 = icmp ugt i32 %49, %5
  br i1 %50, label %51, label %52

51:                                               ; preds = %48
  call fastcc void @work(i32 noundef %5)
  br label %52

52:                                               ; preds = %48, %51
  %53 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128), i32 -1 seq_cst, align 128
  br label %58

54:                                               ; preds = %44, %41
  %55 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_pool_1, i64 128) seq_cst, align 128
  %56 = icmp sgt i32 %55, -1
  br i1 %56, label %58, label %57

57:                                               ; preds = %54, %38
  br label %12

58:                                               ; preds = %54, %52
  br label %10
}

declare i32 @pthread_detach(i64 noundef)

declare i32 @clock_gettime(i32 noundef, ptr noundef)

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
