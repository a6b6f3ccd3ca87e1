; Made by docs/make_llvm.py of launcher.c, aeddf6089e65725d0ad8c94d7c014a5e4382981854d8f2bf3025514a32da2cb2
%struct.anon = type { %struct.opaque, i32, i32, ptr, ptr, ptr, i64, i64, ptr, ptr, i32, ptr }
%struct.opaque = type { [64 x i8] }
%struct.program = type { i64, i64, i64, i64, i64, i64, %struct.table, %struct.table, %struct.table }
%struct.table = type { i64, i64 }
%struct.driver = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
%struct.anon.0 = type { i32, ptr }
%struct.run = type { i64, i64, i64, i64, i64, i64 }
%struct.any = type { i32, i32, ptr }
%struct.place = type { i64, i64 }
%struct.launch = type { i64, i64, [3 x i64], [3 x i64], i64, i64 }
%struct.code = type { i64, i64 }

@.str = private constant [29 x i8] c"the weights cannot be copied\00", align 1
@.str.1 = private constant [19 x i8] c"they are no tensor\00", align 1
@.str.2 = private constant [29 x i8] c"the library cannot be loaded\00", align 1
@.str.3 = private constant [10 x i8] c"no memory\00", align 1
@state = internal global %struct.anon zeroinitializer, align 16
@one = internal global i64 1, align 8
@ansor_deploy_gpu_program = external constant %struct.program, align 8
@.str.4 = private constant [26 x i8] c"the library cannot be run\00", align 1
@.str.5 = private constant [26 x i8] c"there is no such function\00", align 1
@.str.6 = private constant [26 x i8] c"a wrong number of tensors\00", align 1
@cuda = internal global %struct.driver zeroinitializer, align 8
@.str.7 = private constant [23 x i8] c"the GPU cannot be used\00", align 1
@.str.8 = private constant [7 x i8] c"%s: %s\00", align 1
@.str.9 = private constant [13 x i8] c"RuntimeError\00", align 1
@.str.10 = private constant [33 x i8] c"the NVIDIA driver does not start\00", align 1
@.str.11 = private constant [16 x i8] c"there is no GPU\00", align 1
@.str.12 = private constant [13 x i8] c"libcuda.so.1\00", align 1
@.str.13 = private constant [33 x i8] c"this library needs an NVIDIA GPU\00", align 1
@.str.14 = private constant [56 x i8] c"there is no driver here (libcuda.so.1 cannot be loaded)\00", align 1
@names = internal constant [29 x ptr] [ptr @.str.16, ptr @.str.17, ptr @.str.18, ptr @.str.19, ptr @.str.20, ptr @.str.21, ptr @.str.22, ptr @.str.23, ptr @.str.24, ptr @.str.25, ptr @.str.26, ptr @.str.27, ptr @.str.28, ptr @.str.29, ptr @.str.30, ptr @.str.31, ptr @.str.32, ptr @.str.33, ptr @.str.34, ptr @.str.35, ptr @.str.36, ptr @.str.37, ptr @.str.38, ptr @.str.39, ptr @.str.40, ptr @.str.41, ptr @.str.42, ptr @.str.43, ptr @.str.44], align 16
@.str.15 = private constant [39 x i8] c"the NVIDIA driver is too old: it lacks\00", align 1
@.str.16 = private constant [7 x i8] c"cuInit\00", align 1
@.str.17 = private constant [12 x i8] c"cuDeviceGet\00", align 1
@.str.18 = private constant [25 x i8] c"cuDevicePrimaryCtxRetain\00", align 1
@.str.19 = private constant [29 x i8] c"cuDevicePrimaryCtxRelease_v2\00", align 1
@.str.20 = private constant [20 x i8] c"cuCtxPushCurrent_v2\00", align 1
@.str.21 = private constant [19 x i8] c"cuCtxPopCurrent_v2\00", align 1
@.str.22 = private constant [17 x i8] c"cuModuleLoadData\00", align 1
@.str.23 = private constant [15 x i8] c"cuModuleUnload\00", align 1
@.str.24 = private constant [20 x i8] c"cuModuleGetFunction\00", align 1
@.str.25 = private constant [14 x i8] c"cuMemAlloc_v2\00", align 1
@.str.26 = private constant [13 x i8] c"cuMemFree_v2\00", align 1
@.str.27 = private constant [16 x i8] c"cuMemcpyHtoD_v2\00", align 1
@.str.28 = private constant [14 x i8] c"cuMemcpyAsync\00", align 1
@.str.29 = private constant [17 x i8] c"cuGetErrorString\00", align 1
@.str.30 = private constant [15 x i8] c"cuLaunchKernel\00", align 1
@.str.31 = private constant [15 x i8] c"cuStreamCreate\00", align 1
@.str.32 = private constant [19 x i8] c"cuStreamDestroy_v2\00", align 1
@.str.33 = private constant [20 x i8] c"cuStreamSynchronize\00", align 1
@.str.34 = private constant [24 x i8] c"cuStreamBeginCapture_v2\00", align 1
@.str.35 = private constant [19 x i8] c"cuStreamEndCapture\00", align 1
@.str.36 = private constant [28 x i8] c"cuGraphInstantiateWithFlags\00", align 1
@.str.37 = private constant [14 x i8] c"cuGraphLaunch\00", align 1
@.str.38 = private constant [19 x i8] c"cuGraphExecDestroy\00", align 1
@.str.39 = private constant [15 x i8] c"cuGraphDestroy\00", align 1
@.str.40 = private constant [14 x i8] c"cuEventCreate\00", align 1
@.str.41 = private constant [18 x i8] c"cuEventDestroy_v2\00", align 1
@.str.42 = private constant [14 x i8] c"cuEventRecord\00", align 1
@.str.43 = private constant [18 x i8] c"cuStreamWaitEvent\00", align 1
@.str.44 = private constant [19 x i8] c"cuEventSynchronize\00", align 1
@.str.45 = private constant [33 x i8] c"no device memory for the weights\00", align 1
@.str.46 = private constant [33 x i8] c"no device memory for the tensors\00", align 1
@.str.47 = private constant [22 x i8] c"the GPU has no stream\00", align 1
@.str.48 = private constant [21 x i8] c"the GPU has no event\00", align 1
@.str.49 = private constant [37 x i8] c"this GPU is older than the library's\00", align 1
@.str.50 = private constant [26 x i8] c"a kernel cannot be loaded\00", align 1
@.str.51 = private constant [22 x i8] c"a kernel is not there\00", align 1
@.str.52 = private constant [42 x i8] c"an error that the driver has no words for\00", align 1
@.str.53 = private constant [33 x i8] c"the run before is not waited for\00", align 1
@.str.54 = private constant [16 x i8] c"a kernel failed\00", align 1
@.str.55 = private constant [26 x i8] c"an input cannot be copied\00", align 1
@.str.56 = private constant [27 x i8] c"an output cannot be copied\00", align 1
@.str.57 = private constant [30 x i8] c"the indices cannot be checked\00", align 1
@.str.58 = private constant [11 x i8] c"IndexError\00", align 1
@.str.59 = private constant [30 x i8] c"the kernels cannot be started\00", align 1

define i32 @__tvm_ffi_ansor_deploy_gpu_load(ptr noundef readnone captures(none) %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef %3) {
  %5 = alloca [512 x i8], align 16
  %6 = alloca ptr, align 8
  %7 = alloca [512 x i8], align 16
  %8 = alloca ptr, align 8
  %9 = alloca [512 x i8], align 16
  %10 = alloca ptr, align 8
  %11 = alloca [512 x i8], align 16
  %12 = alloca [512 x i8], align 16
  %13 = alloca ptr, align 8
  %14 = alloca [512 x i8], align 16
  %15 = alloca [512 x i8], align 16
  %16 = icmp eq i32 %2, 1
  br i1 %16, label %17, label %20

17:                                               ; preds = %4
  %18 = load i32, ptr %1, align 8
  %19 = icmp eq i32 %18, 70
  br i1 %19, label %22, label %20

20:                                               ; preds = %17, %4
  call void @llvm.lifetime.start.p0(ptr nonnull %15)
  %21 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %15, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str, ptr noundef nonnull @.str.1)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %15)
  call void @llvm.lifetime.end.p0(ptr nonnull %15)
  br label %144

22:                                               ; preds = %17
  %23 = tail call dereferenceable_or_null(64) ptr @calloc(i64 noundef 1, i64 noundef 64)
  %24 = icmp eq ptr %23, null
  br i1 %24, label %25, label %27

25:                                               ; preds = %22
  call void @llvm.lifetime.start.p0(ptr nonnull %14)
  %26 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %14, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.2, ptr noundef nonnull @.str.3)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %14)
  call void @llvm.lifetime.end.p0(ptr nonnull %14)
  br label %144

27:                                               ; preds = %22
  %28 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @state)
  %29 = load i32, ptr getelementptr inbounds nuw (i8, ptr @state, i64 64), align 16
  %30 = icmp eq i32 %29, 0
  br i1 %30, label %31, label %130

31:                                               ; preds = %27
  %32 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %33 = load ptr, ptr %32, align 8
  %34 = getelementptr inbounds nuw i8, ptr %33, i64 24
  %35 = load ptr, ptr %34, align 8
  %36 = getelementptr inbounds nuw i8, ptr %33, i64 64
  %37 = load i64, ptr %36, align 8
  %38 = getelementptr inbounds nuw i8, ptr %35, i64 %37
  %39 = tail call ptr @dlopen(ptr noundef nonnull @.str.12, i32 noundef 2)
  %40 = icmp eq ptr %39, null
  br i1 %40, label %41, label %46

41:                                               ; preds = %31
  call void @llvm.lifetime.start.p0(ptr nonnull %12)
  %42 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %12, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.13, ptr noundef nonnull @.str.14)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %12)
  call void @llvm.lifetime.end.p0(ptr nonnull %12)
  br label %128

43:                                               ; preds = %46
  %44 = add nuw nsw i64 %47, 1
  %45 = icmp eq i64 %44, 29
  br i1 %45, label %55, label %46

46:                                               ; preds = %31, %43
  %47 = phi i64 [ %44, %43 ], [ 0, %31 ]
  %48 = getelementptr inbounds nuw ptr, ptr @names, i64 %47
  %49 = load ptr, ptr %48, align 8
  %50 = tail call ptr @dlsym(ptr noundef nonnull %39, ptr noundef %49)
  %51 = getelementptr inbounds nuw ptr, ptr @cuda, i64 %47
  store ptr %50, ptr %51, align 8
  %52 = icmp eq ptr %50, null
  br i1 %52, label %53, label %43

53:                                               ; preds = %46
  call void @llvm.lifetime.start.p0(ptr nonnull %11)
  %54 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %11, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.15, ptr noundef %49)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %11)
  call void @llvm.lifetime.end.p0(ptr nonnull %11)
  br label %128

55:                                               ; preds = %43
  %56 = load ptr, ptr @cuda, align 8
  %57 = tail call i32 %56(i32 noundef 0)
  %58 = icmp eq i32 %57, 0
  br i1 %58, label %70, label %59

59:                                               ; preds = %55
  call void @llvm.lifetime.start.p0(ptr nonnull %10)
  store ptr null, ptr %10, align 8
  %60 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %61 = call i32 %60(i32 noundef %57, ptr noundef nonnull %10)
  %62 = icmp eq i32 %61, 0
  %63 = load ptr, ptr %10, align 8
  %64 = icmp ne ptr %63, null
  %65 = select i1 %62, i1 %64, i1 false
  br i1 %65, label %67, label %66

66:                                               ; preds = %59
  store ptr @.str.52, ptr %10, align 8
  br label %67

67:                                               ; preds = %66, %59
  %68 = phi ptr [ %63, %59 ], [ @.str.52, %66 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %9)
  %69 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %9, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.10, ptr noundef nonnull %68)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %9)
  call void @llvm.lifetime.end.p0(ptr nonnull %9)
  call void @llvm.lifetime.end.p0(ptr nonnull %10)
  br label %128

70:                                               ; preds = %55
  %71 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 8), align 8
  %72 = tail call i32 %71(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @state, i64 68), i32 noundef 0)
  %73 = icmp eq i32 %72, 0
  br i1 %73, label %85, label %74

74:                                               ; preds = %70
  call void @llvm.lifetime.start.p0(ptr nonnull %8)
  store ptr null, ptr %8, align 8
  %75 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %76 = call i32 %75(i32 noundef %72, ptr noundef nonnull %8)
  %77 = icmp eq i32 %76, 0
  %78 = load ptr, ptr %8, align 8
  %79 = icmp ne ptr %78, null
  %80 = select i1 %77, i1 %79, i1 false
  br i1 %80, label %82, label %81

81:                                               ; preds = %74
  store ptr @.str.52, ptr %8, align 8
  br label %82

82:                                               ; preds = %81, %74
  %83 = phi ptr [ %78, %74 ], [ @.str.52, %81 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %7)
  %84 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %7, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.11, ptr noundef nonnull %83)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %8)
  br label %128

85:                                               ; preds = %70
  %86 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 16), align 8
  %87 = load i32, ptr getelementptr inbounds nuw (i8, ptr @state, i64 68), align 4
  %88 = tail call i32 %86(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @state, i64 72), i32 noundef %87)
  %89 = icmp eq i32 %88, 0
  br i1 %89, label %101, label %90

90:                                               ; preds = %85
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  store ptr null, ptr %6, align 8
  %91 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %92 = call i32 %91(i32 noundef %88, ptr noundef nonnull %6)
  %93 = icmp eq i32 %92, 0
  %94 = load ptr, ptr %6, align 8
  %95 = icmp ne ptr %94, null
  %96 = select i1 %93, i1 %95, i1 false
  br i1 %96, label %98, label %97

97:                                               ; preds = %90
  store ptr @.str.52, ptr %6, align 8
  br label %98

98:                                               ; preds = %97, %90
  %99 = phi ptr [ %94, %90 ], [ @.str.52, %97 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  %100 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %5, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.7, ptr noundef nonnull %99)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %5)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  br label %128

101:                                              ; preds = %85
  %102 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 56), align 8
  %103 = add i64 %102, 1
  %104 = tail call ptr @calloc(i64 noundef %103, i64 noundef 8)
  store ptr %104, ptr getelementptr inbounds nuw (i8, ptr @state, i64 80), align 16
  %105 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 72), align 8
  %106 = add i64 %105, 1
  %107 = tail call ptr @calloc(i64 noundef %106, i64 noundef 8)
  store ptr %107, ptr getelementptr inbounds nuw (i8, ptr @state, i64 88), align 8
  %108 = tail call ptr @calloc(i64 noundef %106, i64 noundef 16)
  store ptr %108, ptr getelementptr inbounds nuw (i8, ptr @state, i64 136), align 8
  %109 = icmp ne ptr %104, null
  %110 = icmp ne ptr %107, null
  %111 = and i1 %109, %110
  %112 = icmp ne ptr %108, null
  %113 = and i1 %111, %112
  br i1 %113, label %115, label %114

114:                                              ; preds = %101
  tail call fastcc void @fail(ptr noundef nonnull @.str.2, ptr noundef nonnull @.str.3)
  br label %128

115:                                              ; preds = %101
  %116 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 32), align 8
  %117 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 72), align 8
  %118 = tail call i32 %116(ptr noundef %117)
  %119 = icmp eq i32 %118, 0
  br i1 %119, label %121, label %120

120:                                              ; preds = %115
  tail call fastcc void @failed(ptr noundef nonnull @.str.7, i32 noundef %118)
  br label %128

121:                                              ; preds = %115
  %122 = tail call fastcc i32 @fill(ptr noundef %38)
  call void @llvm.lifetime.start.p0(ptr nonnull %13)
  %123 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 40), align 8
  %124 = call i32 %123(ptr noundef nonnull %13)
  call void @llvm.lifetime.end.p0(ptr nonnull %13)
  %125 = icmp eq i32 %122, 0
  br i1 %125, label %126, label %128

126:                                              ; preds = %121
  %127 = load i32, ptr getelementptr inbounds nuw (i8, ptr @state, i64 64), align 16
  br label %130

128:                                              ; preds = %41, %53, %82, %98, %114, %120, %67, %121
  call fastcc void @clear()
  %129 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @state)
  call void @free(ptr noundef %23)
  br label %144

130:                                              ; preds = %126, %27
  %131 = phi i32 [ %127, %126 ], [ %29, %27 ]
  %132 = add i32 %131, 1
  store i32 %132, ptr getelementptr inbounds nuw (i8, ptr @state, i64 64), align 16
  %133 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @state)
  store ptr @state, ptr %23, align 8
  %134 = getelementptr inbounds nuw i8, ptr %23, i64 8
  store i32 1, ptr %134, align 8
  %135 = getelementptr inbounds nuw i8, ptr %23, i64 16
  store i32 1, ptr %135, align 8
  %136 = getelementptr inbounds nuw i8, ptr %23, i64 20
  store i8 1, ptr %136, align 4
  %137 = getelementptr inbounds nuw i8, ptr %23, i64 21
  store i8 8, ptr %137, align 1
  %138 = getelementptr inbounds nuw i8, ptr %23, i64 22
  store i16 1, ptr %138, align 2
  %139 = getelementptr inbounds nuw i8, ptr %23, i64 24
  store ptr @one, ptr %139, align 8
  %140 = getelementptr inbounds nuw i8, ptr %23, i64 32
  store ptr @one, ptr %140, align 8
  %141 = getelementptr inbounds nuw i8, ptr %23, i64 56
  store ptr @leave, ptr %141, align 8
  store i32 70, ptr %3, align 8
  %142 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %143 = call i32 @TVMFFITensorFromDLPack(ptr noundef nonnull %23, i32 noundef 0, i32 noundef 0, ptr noundef nonnull %142)
  br label %144

144:                                              ; preds = %25, %130, %128, %20
  %145 = phi i32 [ -1, %20 ], [ -1, %25 ], [ -1, %128 ], [ %143, %130 ]
  ret i32 %145
}

define internal fastcc void @fail(ptr noundef %0, ptr noundef %1) {
  %3 = alloca [512 x i8], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %3)
  %4 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %3, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef %0, ptr noundef %1)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %3)
  call void @llvm.lifetime.end.p0(ptr nonnull %3)
  ret void
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare noalias noundef ptr @calloc(i64 noundef, i64 noundef)

declare i32 @pthread_mutex_lock(ptr noundef)

define internal fastcc void @clear() {
  %1 = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %1)
  %2 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 72), align 8
  %3 = icmp eq ptr %2, null
  br i1 %3, label %94, label %4

4:                                                ; preds = %0
  %5 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 32), align 8
  %6 = tail call i32 %5(ptr noundef nonnull %2)
  %7 = icmp eq i32 %6, 0
  br i1 %7, label %8, label %87

8:                                                ; preds = %4
  %9 = load i32, ptr getelementptr inbounds nuw (i8, ptr @state, i64 128), align 16
  %10 = icmp eq i32 %9, 0
  br i1 %10, label %15, label %11

11:                                               ; preds = %8
  %12 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 224), align 8
  %13 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 120), align 8
  %14 = tail call i32 %12(ptr noundef %13)
  br label %15

15:                                               ; preds = %11, %8
  %16 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 72), align 8
  %17 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 136), align 8
  %18 = icmp ne ptr %17, null
  %19 = icmp ne i64 %16, 0
  %20 = select i1 %18, i1 %19, i1 false
  br i1 %20, label %24, label %21

21:                                               ; preds = %35, %15
  %22 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 112), align 16
  %23 = icmp eq ptr %22, null
  br i1 %23, label %44, label %41

24:                                               ; preds = %15, %35
  %25 = phi ptr [ %36, %35 ], [ %17, %15 ]
  %26 = phi i64 [ %37, %35 ], [ 0, %15 ]
  %27 = getelementptr inbounds nuw %struct.anon.0, ptr %25, i64 %26
  %28 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %29 = load ptr, ptr %28, align 8
  %30 = icmp eq ptr %29, null
  br i1 %30, label %35, label %31

31:                                               ; preds = %24
  %32 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 176), align 8
  %33 = tail call i32 %32(ptr noundef nonnull %29)
  %34 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 136), align 8
  br label %35

35:                                               ; preds = %24, %31
  %36 = phi ptr [ %25, %24 ], [ %34, %31 ]
  %37 = add nuw i64 %26, 1
  %38 = icmp ne ptr %36, null
  %39 = icmp ult i64 %37, %16
  %40 = select i1 %38, i1 %39, i1 false
  br i1 %40, label %24, label %21

41:                                               ; preds = %21
  %42 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 128), align 8
  %43 = tail call i32 %42(ptr noundef nonnull %22)
  br label %44

44:                                               ; preds = %41, %21
  %45 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 120), align 8
  %46 = icmp eq ptr %45, null
  br i1 %46, label %50, label %47

47:                                               ; preds = %44
  %48 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 200), align 8
  %49 = tail call i32 %48(ptr noundef nonnull %45)
  br label %50

50:                                               ; preds = %47, %44
  %51 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 56), align 8
  %52 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 80), align 16
  %53 = icmp ne ptr %52, null
  %54 = icmp ne i64 %51, 0
  %55 = select i1 %53, i1 %54, i1 false
  br i1 %55, label %59, label %56

56:                                               ; preds = %69, %50
  %57 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 96), align 16
  %58 = icmp eq i64 %57, 0
  br i1 %58, label %78, label %75

59:                                               ; preds = %50, %69
  %60 = phi ptr [ %70, %69 ], [ %52, %50 ]
  %61 = phi i64 [ %71, %69 ], [ 0, %50 ]
  %62 = getelementptr inbounds nuw ptr, ptr %60, i64 %61
  %63 = load ptr, ptr %62, align 8
  %64 = icmp eq ptr %63, null
  br i1 %64, label %69, label %65

65:                                               ; preds = %59
  %66 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 56), align 8
  %67 = tail call i32 %66(ptr noundef nonnull %63)
  %68 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 80), align 16
  br label %69

69:                                               ; preds = %59, %65
  %70 = phi ptr [ %60, %59 ], [ %68, %65 ]
  %71 = add nuw i64 %61, 1
  %72 = icmp ne ptr %70, null
  %73 = icmp ult i64 %71, %51
  %74 = select i1 %72, i1 %73, i1 false
  br i1 %74, label %59, label %56

75:                                               ; preds = %56
  %76 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 80), align 8
  %77 = tail call i32 %76(i64 noundef %57)
  br label %78

78:                                               ; preds = %75, %56
  %79 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 104), align 8
  %80 = icmp eq i64 %79, 0
  br i1 %80, label %84, label %81

81:                                               ; preds = %78
  %82 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 80), align 8
  %83 = tail call i32 %82(i64 noundef %79)
  br label %84

84:                                               ; preds = %81, %78
  %85 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 40), align 8
  %86 = call i32 %85(ptr noundef nonnull %1)
  br label %87

87:                                               ; preds = %84, %4
  %88 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 72), align 8
  %89 = icmp eq ptr %88, null
  br i1 %89, label %94, label %90

90:                                               ; preds = %87
  %91 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 24), align 8
  %92 = load i32, ptr getelementptr inbounds nuw (i8, ptr @state, i64 68), align 4
  %93 = call i32 %91(i32 noundef %92)
  br label %94

94:                                               ; preds = %0, %90, %87
  %95 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 80), align 16
  call void @free(ptr noundef %95)
  %96 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 88), align 8
  call void @free(ptr noundef %96)
  %97 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 136), align 8
  call void @free(ptr noundef %97)
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @state, i64 136), align 8
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(60) getelementptr inbounds nuw (i8, ptr @state, i64 72), i8 0, i64 60, i1 false)
  call void @llvm.lifetime.end.p0(ptr nonnull %1)
  ret void
}

declare i32 @pthread_mutex_unlock(ptr noundef)

declare void @free(ptr allocptr noundef captures(none))

define internal void @leave(ptr noundef captures(none) %0) {
  %2 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @state)
  %3 = load i32, ptr getelementptr inbounds nuw (i8, ptr @state, i64 64), align 16
  %4 = add i32 %3, -1
  store i32 %4, ptr getelementptr inbounds nuw (i8, ptr @state, i64 64), align 16
  %5 = icmp eq i32 %4, 0
  br i1 %5, label %6, label %7

6:                                                ; preds = %1
  tail call fastcc void @clear()
  br label %7

7:                                                ; preds = %6, %1
  %8 = tail call i32 @pthread_mutex_unlock(ptr noundef nonnull @state)
  tail call void @free(ptr noundef %0)
  ret void
}

declare i32 @TVMFFITensorFromDLPack(ptr noundef, i32 noundef, i32 noundef, ptr noundef)

declare void @llvm.lifetime.end.p0(ptr captures(none))

define range(i32 -1, 1) i32 @__tvm_ffi_ansor_deploy_gpu_run(ptr noundef readnone captures(none) %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef readnone captures(none) %3) {
  %5 = alloca [512 x i8], align 16
  %6 = alloca ptr, align 8
  %7 = alloca [512 x i8], align 16
  %8 = alloca ptr, align 8
  %9 = alloca [512 x i8], align 16
  %10 = alloca ptr, align 8
  %11 = alloca [512 x i8], align 16
  %12 = alloca ptr, align 8
  %13 = alloca ptr, align 8
  %14 = alloca ptr, align 8
  %15 = alloca [512 x i8], align 16
  %16 = alloca ptr, align 8
  %17 = alloca [512 x i8], align 16
  %18 = alloca ptr, align 8
  %19 = alloca i32, align 4
  %20 = alloca [512 x i8], align 16
  %21 = alloca ptr, align 8
  %22 = alloca [512 x i8], align 16
  %23 = alloca ptr, align 8
  %24 = alloca [512 x i8], align 16
  %25 = alloca ptr, align 8
  %26 = alloca [512 x i8], align 16
  %27 = alloca [512 x i8], align 16
  %28 = alloca ptr, align 8
  %29 = icmp sgt i32 %2, 1
  br i1 %29, label %30, label %36

30:                                               ; preds = %4
  %31 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %32 = load ptr, ptr %31, align 8
  %33 = ptrtoint ptr %32 to i64
  %34 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 88), align 8
  %35 = icmp ugt i64 %34, %33
  br i1 %35, label %38, label %36

36:                                               ; preds = %4, %30
  call void @llvm.lifetime.start.p0(ptr nonnull %27)
  %37 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %27, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.4, ptr noundef nonnull @.str.5)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %27)
  call void @llvm.lifetime.end.p0(ptr nonnull %27)
  br label %427

38:                                               ; preds = %30
  %39 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 80), align 8
  %40 = getelementptr inbounds nuw i64, ptr @ansor_deploy_gpu_program, i64 %39
  %41 = getelementptr inbounds nuw %struct.run, ptr %40, i64 %33
  %42 = zext nneg i32 %2 to i64
  %43 = getelementptr inbounds nuw i8, ptr %41, i64 24
  %44 = load i64, ptr %43, align 8
  %45 = getelementptr inbounds nuw i8, ptr %41, i64 40
  %46 = load i64, ptr %45, align 8
  %47 = add i64 %46, %44
  %48 = add i64 %47, 2
  %49 = icmp eq i64 %48, %42
  br i1 %49, label %52, label %50

50:                                               ; preds = %38
  call void @llvm.lifetime.start.p0(ptr nonnull %26)
  %51 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %26, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.4, ptr noundef nonnull @.str.6)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %26)
  call void @llvm.lifetime.end.p0(ptr nonnull %26)
  br label %427

52:                                               ; preds = %38
  %53 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @state)
  call void @llvm.lifetime.start.p0(ptr nonnull %28)
  %54 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 32), align 8
  %55 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 72), align 8
  %56 = tail call i32 %54(ptr noundef %55)
  %57 = icmp eq i32 %56, 0
  br i1 %57, label %69, label %58

58:                                               ; preds = %52
  call void @llvm.lifetime.start.p0(ptr nonnull %25)
  store ptr null, ptr %25, align 8
  %59 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %60 = call i32 %59(i32 noundef %56, ptr noundef nonnull %25)
  %61 = icmp eq i32 %60, 0
  %62 = load ptr, ptr %25, align 8
  %63 = icmp ne ptr %62, null
  %64 = select i1 %61, i1 %63, i1 false
  br i1 %64, label %66, label %65

65:                                               ; preds = %58
  store ptr @.str.52, ptr %25, align 8
  br label %66

66:                                               ; preds = %58, %65
  %67 = phi ptr [ %62, %58 ], [ @.str.52, %65 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %24)
  %68 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %24, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.7, ptr noundef nonnull %67)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %24)
  call void @llvm.lifetime.end.p0(ptr nonnull %24)
  call void @llvm.lifetime.end.p0(ptr nonnull %25)
  br label %424

69:                                               ; preds = %52
  %70 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %71 = load i32, ptr getelementptr inbounds nuw (i8, ptr @state, i64 68), align 4
  %72 = tail call ptr @TVMFFIEnvGetStream(i32 noundef 2, i32 noundef %71)
  %73 = icmp eq i64 %47, 0
  br i1 %73, label %76, label %80

74:                                               ; preds = %80
  %75 = icmp eq i32 %89, 0
  br label %76

76:                                               ; preds = %74, %69
  %77 = phi i1 [ false, %69 ], [ %75, %74 ]
  %78 = load i32, ptr getelementptr inbounds nuw (i8, ptr @state, i64 128), align 16
  %79 = icmp eq i32 %78, 0
  br i1 %79, label %108, label %92

80:                                               ; preds = %69, %80
  %81 = phi i32 [ %89, %80 ], [ 1, %69 ]
  %82 = phi i64 [ %90, %80 ], [ 0, %69 ]
  %83 = getelementptr inbounds nuw %struct.any, ptr %70, i64 %82
  %84 = getelementptr inbounds nuw i8, ptr %83, i64 8
  %85 = load ptr, ptr %84, align 8
  %86 = getelementptr inbounds nuw i8, ptr %85, i64 32
  %87 = load i32, ptr %86, align 8
  %88 = icmp eq i32 %87, 2
  %89 = select i1 %88, i32 %81, i32 0
  %90 = add nuw i64 %82, 1
  %91 = icmp eq i64 %90, %47
  br i1 %91, label %74, label %80

92:                                               ; preds = %76
  %93 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 216), align 8
  %94 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 120), align 8
  %95 = tail call i32 %93(ptr noundef %72, ptr noundef %94, i32 noundef 0)
  %96 = icmp eq i32 %95, 0
  br i1 %96, label %108, label %97

97:                                               ; preds = %92
  call void @llvm.lifetime.start.p0(ptr nonnull %23)
  store ptr null, ptr %23, align 8
  %98 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %99 = call i32 %98(i32 noundef %95, ptr noundef nonnull %23)
  %100 = icmp eq i32 %99, 0
  %101 = load ptr, ptr %23, align 8
  %102 = icmp ne ptr %101, null
  %103 = select i1 %100, i1 %102, i1 false
  br i1 %103, label %105, label %104

104:                                              ; preds = %97
  store ptr @.str.52, ptr %23, align 8
  br label %105

105:                                              ; preds = %104, %97
  %106 = phi ptr [ %101, %97 ], [ @.str.52, %104 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %22)
  %107 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %22, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.53, ptr noundef nonnull %106)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %22)
  call void @llvm.lifetime.end.p0(ptr nonnull %22)
  call void @llvm.lifetime.end.p0(ptr nonnull %23)
  br label %420

108:                                              ; preds = %92, %76
  %109 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 32), align 8
  %110 = getelementptr inbounds nuw i8, ptr %41, i64 16
  %111 = load i64, ptr %110, align 8
  %112 = getelementptr i64, ptr @ansor_deploy_gpu_program, i64 %109
  %113 = getelementptr i64, ptr %112, i64 %111
  %114 = getelementptr inbounds nuw i8, ptr %41, i64 32
  %115 = load i64, ptr %114, align 8
  %116 = getelementptr i64, ptr %112, i64 %115
  %117 = icmp eq i64 %44, 0
  br i1 %117, label %163, label %118

118:                                              ; preds = %108, %159
  %119 = phi ptr [ %161, %159 ], [ %70, %108 ]
  %120 = phi i64 [ %160, %159 ], [ 0, %108 ]
  %121 = getelementptr inbounds nuw %struct.place, ptr %113, i64 %120
  %122 = getelementptr inbounds nuw i8, ptr %121, i64 8
  %123 = load i64, ptr %122, align 8
  %124 = icmp eq i64 %123, 0
  br i1 %124, label %159, label %125

125:                                              ; preds = %118
  %126 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 96), align 8
  %127 = load i64, ptr %121, align 8
  %128 = icmp sgt i64 %127, -1
  br i1 %128, label %133, label %129

129:                                              ; preds = %125
  %130 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 104), align 8
  %131 = and i64 %127, 9223372036854775807
  %132 = add i64 %130, %131
  br label %136

133:                                              ; preds = %125
  %134 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 96), align 16
  %135 = add i64 %134, %127
  br label %136

136:                                              ; preds = %133, %129
  %137 = phi i64 [ %132, %129 ], [ %135, %133 ]
  %138 = getelementptr inbounds nuw i8, ptr %119, i64 8
  %139 = load ptr, ptr %138, align 8
  %140 = getelementptr inbounds nuw i8, ptr %139, i64 24
  %141 = load ptr, ptr %140, align 8
  %142 = getelementptr inbounds nuw i8, ptr %139, i64 64
  %143 = load i64, ptr %142, align 8
  %144 = getelementptr inbounds nuw i8, ptr %141, i64 %143
  %145 = ptrtoint ptr %144 to i64
  %146 = tail call i32 %126(i64 noundef %137, i64 noundef %145, i64 noundef %123, ptr noundef %72)
  %147 = icmp eq i32 %146, 0
  br i1 %147, label %159, label %148

148:                                              ; preds = %136
  call void @llvm.lifetime.start.p0(ptr nonnull %21)
  store ptr null, ptr %21, align 8
  %149 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %150 = call i32 %149(i32 noundef %146, ptr noundef nonnull %21)
  %151 = icmp eq i32 %150, 0
  %152 = load ptr, ptr %21, align 8
  %153 = icmp ne ptr %152, null
  %154 = select i1 %151, i1 %153, i1 false
  br i1 %154, label %156, label %155

155:                                              ; preds = %148
  store ptr @.str.52, ptr %21, align 8
  br label %156

156:                                              ; preds = %155, %148
  %157 = phi ptr [ %152, %148 ], [ @.str.52, %155 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %20)
  %158 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %20, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.55, ptr noundef nonnull %157)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %20)
  call void @llvm.lifetime.end.p0(ptr nonnull %20)
  call void @llvm.lifetime.end.p0(ptr nonnull %21)
  br label %394

159:                                              ; preds = %136, %118
  %160 = add nuw i64 %120, 1
  %161 = getelementptr inbounds nuw i8, ptr %119, i64 16
  %162 = icmp eq i64 %160, %44
  br i1 %162, label %163, label %118

163:                                              ; preds = %159, %108
  %164 = phi ptr [ %70, %108 ], [ %161, %159 ]
  %165 = load i64, ptr %41, align 8
  %166 = getelementptr inbounds nuw i8, ptr %41, i64 8
  %167 = load i64, ptr %166, align 8
  %168 = add i64 %167, %165
  %169 = icmp ult i64 %165, %168
  br i1 %169, label %170, label %347

170:                                              ; preds = %163
  %171 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 64), align 8
  %172 = getelementptr inbounds nuw i64, ptr @ansor_deploy_gpu_program, i64 %171
  %173 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 40), align 8
  %174 = getelementptr inbounds nuw i64, ptr @ansor_deploy_gpu_program, i64 %173
  %175 = ptrtoint ptr %19 to i64
  br label %176

176:                                              ; preds = %344, %170
  %177 = phi i64 [ %165, %170 ], [ %345, %344 ]
  %178 = getelementptr inbounds nuw %struct.launch, ptr %172, i64 %177
  %179 = add nuw i64 %177, 1
  %180 = call i64 @llvm.umax.i64(i64 %168, i64 %179)
  br label %181

181:                                              ; preds = %187, %176
  %182 = phi i64 [ %177, %176 ], [ %188, %187 ]
  %183 = getelementptr inbounds nuw %struct.launch, ptr %172, i64 %182
  %184 = getelementptr inbounds nuw i8, ptr %183, i64 16
  %185 = load i64, ptr %184, align 8
  %186 = icmp eq i64 %185, 0
  br i1 %186, label %190, label %187

187:                                              ; preds = %181
  %188 = add nuw i64 %182, 1
  %189 = icmp ult i64 %188, %168
  br i1 %189, label %181, label %190

190:                                              ; preds = %187, %181
  %191 = phi i64 [ %180, %187 ], [ %182, %181 ]
  %192 = icmp eq i64 %191, %177
  br i1 %192, label %193, label %248

193:                                              ; preds = %190
  %194 = getelementptr inbounds nuw i8, ptr %178, i64 8
  %195 = load i64, ptr %194, align 8
  %196 = getelementptr inbounds nuw i8, ptr %174, i64 %195
  %197 = getelementptr inbounds nuw i8, ptr %178, i64 64
  %198 = load i64, ptr %197, align 8
  %199 = getelementptr i64, ptr %112, i64 %198
  %200 = load i64, ptr %199, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %19)
  store i32 0, ptr %19, align 4
  %201 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 96), align 8
  %202 = icmp sgt i64 %200, -1
  br i1 %202, label %207, label %203

203:                                              ; preds = %193
  %204 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 104), align 8
  %205 = and i64 %200, 9223372036854775807
  %206 = add i64 %204, %205
  br label %210

207:                                              ; preds = %193
  %208 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 96), align 16
  %209 = add i64 %208, %200
  br label %210

210:                                              ; preds = %207, %203
  %211 = phi i64 [ %206, %203 ], [ %209, %207 ]
  %212 = call i32 %201(i64 noundef %175, i64 noundef %211, i64 noundef 4, ptr noundef %72)
  %213 = icmp eq i32 %212, 0
  br i1 %213, label %225, label %214

214:                                              ; preds = %210
  call void @llvm.lifetime.start.p0(ptr nonnull %18)
  store ptr null, ptr %18, align 8
  %215 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %216 = call i32 %215(i32 noundef %212, ptr noundef nonnull %18)
  %217 = icmp eq i32 %216, 0
  %218 = load ptr, ptr %18, align 8
  %219 = icmp ne ptr %218, null
  %220 = select i1 %217, i1 %219, i1 false
  br i1 %220, label %222, label %221

221:                                              ; preds = %214
  store ptr @.str.52, ptr %18, align 8
  br label %222

222:                                              ; preds = %221, %214
  %223 = phi ptr [ %218, %214 ], [ @.str.52, %221 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %17)
  %224 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %17, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.57, ptr noundef nonnull %223)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %17)
  call void @llvm.lifetime.end.p0(ptr nonnull %17)
  call void @llvm.lifetime.end.p0(ptr nonnull %18)
  br label %244

225:                                              ; preds = %210
  %226 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 136), align 8
  %227 = call i32 %226(ptr noundef %72)
  %228 = icmp eq i32 %227, 0
  br i1 %228, label %240, label %229

229:                                              ; preds = %225
  call void @llvm.lifetime.start.p0(ptr nonnull %16)
  store ptr null, ptr %16, align 8
  %230 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %231 = call i32 %230(i32 noundef %227, ptr noundef nonnull %16)
  %232 = icmp eq i32 %231, 0
  %233 = load ptr, ptr %16, align 8
  %234 = icmp ne ptr %233, null
  %235 = select i1 %232, i1 %234, i1 false
  br i1 %235, label %237, label %236

236:                                              ; preds = %229
  store ptr @.str.52, ptr %16, align 8
  br label %237

237:                                              ; preds = %236, %229
  %238 = phi ptr [ %233, %229 ], [ @.str.52, %236 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %15)
  %239 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %15, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.54, ptr noundef nonnull %238)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %15)
  call void @llvm.lifetime.end.p0(ptr nonnull %15)
  call void @llvm.lifetime.end.p0(ptr nonnull %16)
  br label %244

240:                                              ; preds = %225
  %241 = load i32, ptr %19, align 4
  %242 = icmp eq i32 %241, 0
  br i1 %242, label %243, label %245

243:                                              ; preds = %240
  call void @llvm.lifetime.end.p0(ptr nonnull %19)
  br label %344

244:                                              ; preds = %237, %222
  call void @llvm.lifetime.end.p0(ptr nonnull %19)
  br label %394

245:                                              ; preds = %240
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.58, ptr noundef nonnull %196)
  %246 = load i32, ptr %19, align 4
  %247 = icmp eq i32 %246, 0
  call void @llvm.lifetime.end.p0(ptr nonnull %19)
  br i1 %247, label %344, label %394

248:                                              ; preds = %190
  %249 = sub i64 %191, %177
  %250 = icmp ugt i64 %249, 1
  br i1 %250, label %251, label %299

251:                                              ; preds = %248
  %252 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 136), align 8
  %253 = getelementptr inbounds nuw %struct.anon.0, ptr %252, i64 %177
  %254 = load i32, ptr %253, align 8
  %255 = icmp slt i32 %254, 2
  br i1 %255, label %256, label %299

256:                                              ; preds = %251
  %257 = add nsw i32 %254, 1
  store i32 %257, ptr %253, align 8
  %258 = icmp eq i32 %254, 1
  br i1 %258, label %259, label %299

259:                                              ; preds = %256
  call void @llvm.lifetime.start.p0(ptr nonnull %13)
  store ptr null, ptr %13, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %14)
  store ptr null, ptr %14, align 8
  %260 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 144), align 8
  %261 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 112), align 16
  %262 = call i32 %260(ptr noundef %261, i32 noundef 2)
  %263 = icmp eq i32 %262, 0
  br i1 %263, label %264, label %294

264:                                              ; preds = %259
  %265 = icmp ult i64 %177, %191
  br i1 %265, label %275, label %266

266:                                              ; preds = %275, %264
  %267 = phi i1 [ true, %264 ], [ %281, %275 ]
  %268 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 152), align 8
  %269 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 112), align 16
  %270 = call i32 %268(ptr noundef %269, ptr noundef nonnull %13)
  %271 = icmp eq i32 %270, 0
  %272 = load ptr, ptr %13, align 8
  %273 = icmp ne ptr %272, null
  %274 = select i1 %271, i1 %273, i1 false
  br i1 %274, label %283, label %294

275:                                              ; preds = %264, %275
  %276 = phi i64 [ %279, %275 ], [ %177, %264 ]
  %277 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 112), align 16
  %278 = call fastcc i32 @start_kernel(i64 noundef %276, ptr noundef %277)
  %279 = add nuw i64 %276, 1
  %280 = icmp ult i64 %279, %191
  %281 = icmp eq i32 %278, 0
  %282 = select i1 %280, i1 %281, i1 false
  br i1 %282, label %275, label %266

283:                                              ; preds = %266
  br i1 %267, label %284, label %288

284:                                              ; preds = %283
  %285 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 160), align 8
  %286 = call i32 %285(ptr noundef nonnull %14, ptr noundef nonnull %272, i64 noundef 0)
  %287 = icmp eq i32 %286, 0
  br i1 %287, label %289, label %288

288:                                              ; preds = %284, %283
  store ptr null, ptr %14, align 8
  br label %289

289:                                              ; preds = %288, %284
  %290 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 184), align 8
  %291 = load ptr, ptr %13, align 8
  %292 = call i32 %290(ptr noundef %291)
  %293 = load ptr, ptr %14, align 8
  br label %294

294:                                              ; preds = %289, %266, %259
  %295 = phi ptr [ null, %259 ], [ %293, %289 ], [ null, %266 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %14)
  call void @llvm.lifetime.end.p0(ptr nonnull %13)
  %296 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 136), align 8
  %297 = getelementptr inbounds nuw %struct.anon.0, ptr %296, i64 %177
  %298 = getelementptr inbounds nuw i8, ptr %297, i64 8
  store ptr %295, ptr %298, align 8
  br label %299

299:                                              ; preds = %294, %256, %251, %248
  %300 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 136), align 8
  %301 = getelementptr inbounds nuw %struct.anon.0, ptr %300, i64 %177
  %302 = getelementptr inbounds nuw i8, ptr %301, i64 8
  %303 = load ptr, ptr %302, align 8
  %304 = icmp eq ptr %303, null
  br i1 %304, label %305, label %307

305:                                              ; preds = %299
  %306 = icmp ult i64 %177, %191
  br i1 %306, label %319, label %344

307:                                              ; preds = %299
  %308 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 168), align 8
  %309 = call i32 %308(ptr noundef nonnull %303, ptr noundef %72)
  %310 = icmp eq i32 %309, 0
  br i1 %310, label %344, label %311

311:                                              ; preds = %307
  call void @llvm.lifetime.start.p0(ptr nonnull %12)
  store ptr null, ptr %12, align 8
  %312 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %313 = call i32 %312(i32 noundef %309, ptr noundef nonnull %12)
  %314 = icmp eq i32 %313, 0
  %315 = load ptr, ptr %12, align 8
  %316 = icmp ne ptr %315, null
  %317 = select i1 %314, i1 %316, i1 false
  br i1 %317, label %341, label %318

318:                                              ; preds = %311
  store ptr @.str.52, ptr %12, align 8
  br label %341

319:                                              ; preds = %305, %335
  %320 = phi i64 [ %336, %335 ], [ %177, %305 ]
  %321 = call fastcc i32 @start_kernel(i64 noundef %320, ptr noundef %72)
  %322 = icmp eq i32 %321, 0
  br i1 %322, label %335, label %323

323:                                              ; preds = %319
  %324 = getelementptr inbounds nuw %struct.launch, ptr %172, i64 %320
  %325 = getelementptr inbounds nuw i8, ptr %324, i64 8
  %326 = load i64, ptr %325, align 8
  %327 = getelementptr inbounds nuw i8, ptr %174, i64 %326
  call void @llvm.lifetime.start.p0(ptr nonnull %10)
  store ptr null, ptr %10, align 8
  %328 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %329 = call i32 %328(i32 noundef %321, ptr noundef nonnull %10)
  %330 = icmp eq i32 %329, 0
  %331 = load ptr, ptr %10, align 8
  %332 = icmp ne ptr %331, null
  %333 = select i1 %330, i1 %332, i1 false
  br i1 %333, label %338, label %334

334:                                              ; preds = %323
  store ptr @.str.52, ptr %10, align 8
  br label %338

335:                                              ; preds = %319
  %336 = add i64 %320, 1
  %337 = icmp eq i64 %336, %191
  br i1 %337, label %344, label %319

338:                                              ; preds = %334, %323
  %339 = phi ptr [ %331, %323 ], [ @.str.52, %334 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %9)
  %340 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %9, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull %327, ptr noundef nonnull %339)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %9)
  call void @llvm.lifetime.end.p0(ptr nonnull %9)
  call void @llvm.lifetime.end.p0(ptr nonnull %10)
  br label %394

341:                                              ; preds = %318, %311
  %342 = phi ptr [ %315, %311 ], [ @.str.52, %318 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %11)
  %343 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %11, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.59, ptr noundef nonnull %342)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %11)
  call void @llvm.lifetime.end.p0(ptr nonnull %11)
  call void @llvm.lifetime.end.p0(ptr nonnull %12)
  br label %394

344:                                              ; preds = %335, %307, %305, %245, %243
  %345 = phi i64 [ %179, %245 ], [ %191, %307 ], [ %191, %305 ], [ %179, %243 ], [ %191, %335 ]
  %346 = icmp ult i64 %345, %168
  br i1 %346, label %176, label %347

347:                                              ; preds = %344, %163
  %348 = icmp eq i64 %46, 0
  br i1 %348, label %394, label %349

349:                                              ; preds = %347, %390
  %350 = phi i64 [ %391, %390 ], [ 0, %347 ]
  %351 = phi ptr [ %392, %390 ], [ %164, %347 ]
  %352 = getelementptr inbounds nuw %struct.place, ptr %116, i64 %350
  %353 = getelementptr inbounds nuw i8, ptr %352, i64 8
  %354 = load i64, ptr %353, align 8
  %355 = icmp eq i64 %354, 0
  br i1 %355, label %390, label %356

356:                                              ; preds = %349
  %357 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 96), align 8
  %358 = getelementptr inbounds nuw i8, ptr %351, i64 8
  %359 = load ptr, ptr %358, align 8
  %360 = getelementptr inbounds nuw i8, ptr %359, i64 24
  %361 = load ptr, ptr %360, align 8
  %362 = getelementptr inbounds nuw i8, ptr %359, i64 64
  %363 = load i64, ptr %362, align 8
  %364 = getelementptr inbounds nuw i8, ptr %361, i64 %363
  %365 = ptrtoint ptr %364 to i64
  %366 = load i64, ptr %352, align 8
  %367 = icmp sgt i64 %366, -1
  br i1 %367, label %372, label %368

368:                                              ; preds = %356
  %369 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 104), align 8
  %370 = and i64 %366, 9223372036854775807
  %371 = add i64 %369, %370
  br label %375

372:                                              ; preds = %356
  %373 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 96), align 16
  %374 = add i64 %373, %366
  br label %375

375:                                              ; preds = %372, %368
  %376 = phi i64 [ %371, %368 ], [ %374, %372 ]
  %377 = call i32 %357(i64 noundef %365, i64 noundef %376, i64 noundef %354, ptr noundef %72)
  %378 = icmp eq i32 %377, 0
  br i1 %378, label %390, label %379

379:                                              ; preds = %375
  call void @llvm.lifetime.start.p0(ptr nonnull %8)
  store ptr null, ptr %8, align 8
  %380 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %381 = call i32 %380(i32 noundef %377, ptr noundef nonnull %8)
  %382 = icmp eq i32 %381, 0
  %383 = load ptr, ptr %8, align 8
  %384 = icmp ne ptr %383, null
  %385 = select i1 %382, i1 %384, i1 false
  br i1 %385, label %387, label %386

386:                                              ; preds = %379
  store ptr @.str.52, ptr %8, align 8
  br label %387

387:                                              ; preds = %386, %379
  %388 = phi ptr [ %383, %379 ], [ @.str.52, %386 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %7)
  %389 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %7, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.56, ptr noundef nonnull %388)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %8)
  br label %394

390:                                              ; preds = %375, %349
  %391 = add nuw i64 %350, 1
  %392 = getelementptr inbounds nuw i8, ptr %351, i64 16
  %393 = icmp eq i64 %391, %46
  br i1 %393, label %394, label %349

394:                                              ; preds = %245, %390, %387, %347, %341, %338, %244, %156
  %395 = phi i1 [ true, %156 ], [ false, %390 ], [ true, %244 ], [ true, %341 ], [ true, %338 ], [ true, %387 ], [ false, %347 ], [ true, %245 ]
  %396 = phi i32 [ -1, %156 ], [ 0, %390 ], [ -1, %244 ], [ -1, %341 ], [ -1, %338 ], [ -1, %387 ], [ 0, %347 ], [ -1, %245 ]
  br i1 %77, label %403, label %397

397:                                              ; preds = %394
  %398 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 208), align 8
  %399 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 120), align 8
  %400 = call i32 %398(ptr noundef %399, ptr noundef %72)
  %401 = icmp eq i32 %400, 0
  %402 = zext i1 %401 to i32
  store i32 %402, ptr getelementptr inbounds nuw (i8, ptr @state, i64 128), align 16
  br i1 %401, label %420, label %404

403:                                              ; preds = %394
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @state, i64 128), align 16
  br label %404

404:                                              ; preds = %403, %397
  %405 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 136), align 8
  %406 = call i32 %405(ptr noundef %72)
  %407 = icmp eq i32 %406, 0
  %408 = select i1 %395, i1 true, i1 %407
  br i1 %408, label %420, label %409

409:                                              ; preds = %404
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  store ptr null, ptr %6, align 8
  %410 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %411 = call i32 %410(i32 noundef %406, ptr noundef nonnull %6)
  %412 = icmp eq i32 %411, 0
  %413 = load ptr, ptr %6, align 8
  %414 = icmp ne ptr %413, null
  %415 = select i1 %412, i1 %414, i1 false
  br i1 %415, label %417, label %416

416:                                              ; preds = %409
  store ptr @.str.52, ptr %6, align 8
  br label %417

417:                                              ; preds = %416, %409
  %418 = phi ptr [ %413, %409 ], [ @.str.52, %416 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  %419 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %5, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.54, ptr noundef nonnull %418)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %5)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  br label %420

420:                                              ; preds = %105, %397, %404, %417
  %421 = phi i32 [ -1, %105 ], [ -1, %417 ], [ %396, %404 ], [ %396, %397 ]
  %422 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 40), align 8
  %423 = call i32 %422(ptr noundef nonnull %28)
  br label %424

424:                                              ; preds = %420, %66
  %425 = phi i32 [ -1, %66 ], [ %421, %420 ]
  %426 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @state)
  call void @llvm.lifetime.end.p0(ptr nonnull %28)
  br label %427

427:                                              ; preds = %50, %424, %36
  %428 = phi i32 [ -1, %36 ], [ -1, %50 ], [ %425, %424 ]
  ret i32 %428
}

define internal fastcc void @failed(ptr noundef %0, i32 noundef %1) {
  %3 = alloca [512 x i8], align 16
  %4 = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  store ptr null, ptr %4, align 8
  %5 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %6 = call i32 %5(i32 noundef %1, ptr noundef nonnull %4)
  %7 = icmp eq i32 %6, 0
  %8 = load ptr, ptr %4, align 8
  %9 = icmp ne ptr %8, null
  %10 = select i1 %7, i1 %9, i1 false
  br i1 %10, label %12, label %11

11:                                               ; preds = %2
  store ptr @.str.52, ptr %4, align 8
  br label %12

12:                                               ; preds = %2, %11
  %13 = phi ptr [ %8, %2 ], [ @.str.52, %11 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %3)
  %14 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %3, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef %0, ptr noundef nonnull %13)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %3)
  call void @llvm.lifetime.end.p0(ptr nonnull %3)
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  ret void
}

declare noundef i32 @snprintf(ptr noalias noundef writeonly captures(none), i64 noundef, ptr noundef readonly captures(none), ...)

declare void @TVMFFIErrorSetRaisedFromCStr(ptr noundef, ptr noundef)

define internal fastcc range(i32 -1, 1) i32 @fill(ptr noundef %0) {
  %2 = alloca [512 x i8], align 16
  %3 = alloca ptr, align 8
  %4 = alloca [512 x i8], align 16
  %5 = alloca ptr, align 8
  %6 = alloca [512 x i8], align 16
  %7 = alloca ptr, align 8
  %8 = alloca [512 x i8], align 16
  %9 = alloca ptr, align 8
  %10 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 72), align 8
  %11 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 8), align 8
  %12 = tail call i32 %10(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @state, i64 96), i64 noundef %11)
  %13 = icmp eq i32 %12, 0
  br i1 %13, label %25, label %14

14:                                               ; preds = %1
  call void @llvm.lifetime.start.p0(ptr nonnull %9)
  store ptr null, ptr %9, align 8
  %15 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %16 = call i32 %15(i32 noundef %12, ptr noundef nonnull %9)
  %17 = icmp eq i32 %16, 0
  %18 = load ptr, ptr %9, align 8
  %19 = icmp ne ptr %18, null
  %20 = select i1 %17, i1 %19, i1 false
  br i1 %20, label %22, label %21

21:                                               ; preds = %14
  store ptr @.str.52, ptr %9, align 8
  br label %22

22:                                               ; preds = %21, %14
  %23 = phi ptr [ %18, %14 ], [ @.str.52, %21 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %8)
  %24 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %8, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.45, ptr noundef nonnull %23)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %8)
  call void @llvm.lifetime.end.p0(ptr nonnull %8)
  call void @llvm.lifetime.end.p0(ptr nonnull %9)
  br label %84

25:                                               ; preds = %1
  %26 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 72), align 8
  %27 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 16), align 8
  %28 = tail call i32 %26(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @state, i64 104), i64 noundef %27)
  %29 = icmp eq i32 %28, 0
  br i1 %29, label %41, label %30

30:                                               ; preds = %25
  call void @llvm.lifetime.start.p0(ptr nonnull %7)
  store ptr null, ptr %7, align 8
  %31 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %32 = call i32 %31(i32 noundef %28, ptr noundef nonnull %7)
  %33 = icmp eq i32 %32, 0
  %34 = load ptr, ptr %7, align 8
  %35 = icmp ne ptr %34, null
  %36 = select i1 %33, i1 %35, i1 false
  br i1 %36, label %38, label %37

37:                                               ; preds = %30
  store ptr @.str.52, ptr %7, align 8
  br label %38

38:                                               ; preds = %37, %30
  %39 = phi ptr [ %34, %30 ], [ @.str.52, %37 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  %40 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %6, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.46, ptr noundef nonnull %39)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %7)
  br label %84

41:                                               ; preds = %25
  %42 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 88), align 8
  %43 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 96), align 16
  %44 = tail call i32 %42(i64 noundef %43, ptr noundef %0, i64 noundef %11)
  %45 = icmp eq i32 %44, 0
  br i1 %45, label %57, label %46

46:                                               ; preds = %41
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  store ptr null, ptr %5, align 8
  %47 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %48 = call i32 %47(i32 noundef %44, ptr noundef nonnull %5)
  %49 = icmp eq i32 %48, 0
  %50 = load ptr, ptr %5, align 8
  %51 = icmp ne ptr %50, null
  %52 = select i1 %49, i1 %51, i1 false
  br i1 %52, label %54, label %53

53:                                               ; preds = %46
  store ptr @.str.52, ptr %5, align 8
  br label %54

54:                                               ; preds = %53, %46
  %55 = phi ptr [ %50, %46 ], [ @.str.52, %53 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  %56 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %4, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str, ptr noundef nonnull %55)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %4)
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %84

57:                                               ; preds = %41
  %58 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 136), align 8
  %59 = tail call i32 %58(ptr noundef null)
  %60 = icmp eq i32 %59, 0
  br i1 %60, label %72, label %61

61:                                               ; preds = %57
  call void @llvm.lifetime.start.p0(ptr nonnull %3)
  store ptr null, ptr %3, align 8
  %62 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %63 = call i32 %62(i32 noundef %59, ptr noundef nonnull %3)
  %64 = icmp eq i32 %63, 0
  %65 = load ptr, ptr %3, align 8
  %66 = icmp ne ptr %65, null
  %67 = select i1 %64, i1 %66, i1 false
  br i1 %67, label %69, label %68

68:                                               ; preds = %61
  store ptr @.str.52, ptr %3, align 8
  br label %69

69:                                               ; preds = %68, %61
  %70 = phi ptr [ %65, %61 ], [ @.str.52, %68 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %2)
  %71 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %2, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str, ptr noundef nonnull %70)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %2)
  call void @llvm.lifetime.end.p0(ptr nonnull %2)
  call void @llvm.lifetime.end.p0(ptr nonnull %3)
  br label %84

72:                                               ; preds = %57
  %73 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 120), align 8
  %74 = tail call i32 %73(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @state, i64 112), i32 noundef 1)
  %75 = icmp eq i32 %74, 0
  br i1 %75, label %77, label %76

76:                                               ; preds = %72
  tail call fastcc void @failed(ptr noundef nonnull @.str.47, i32 noundef %74)
  br label %84

77:                                               ; preds = %72
  %78 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 192), align 8
  %79 = tail call i32 %78(ptr noundef nonnull getelementptr inbounds nuw (i8, ptr @state, i64 120), i32 noundef 2)
  %80 = icmp eq i32 %79, 0
  br i1 %80, label %82, label %81

81:                                               ; preds = %77
  tail call fastcc void @failed(ptr noundef nonnull @.str.48, i32 noundef %79)
  br label %84

82:                                               ; preds = %77
  %83 = tail call fastcc i32 @load_modules()
  br label %84

84:                                               ; preds = %81, %76, %69, %54, %38, %22, %82
  %85 = phi i32 [ %83, %82 ], [ -1, %81 ], [ -1, %76 ], [ -1, %69 ], [ -1, %54 ], [ -1, %38 ], [ -1, %22 ]
  ret i32 %85
}

declare ptr @dlopen(ptr noundef, i32 noundef)

declare ptr @dlsym(ptr noundef, ptr noundef)

define internal fastcc range(i32 -1, 1) i32 @load_modules() {
  %1 = alloca [512 x i8], align 16
  %2 = alloca ptr, align 8
  %3 = alloca [512 x i8], align 16
  %4 = alloca ptr, align 8
  %5 = alloca [512 x i8], align 16
  %6 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 48), align 8
  %7 = getelementptr inbounds nuw i64, ptr @ansor_deploy_gpu_program, i64 %6
  %8 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 56), align 8
  %9 = icmp eq i64 %8, 0
  br i1 %9, label %51, label %10

10:                                               ; preds = %0
  %11 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 40), align 8
  %12 = getelementptr inbounds nuw i64, ptr @ansor_deploy_gpu_program, i64 %11
  br label %13

13:                                               ; preds = %10, %48
  %14 = phi i64 [ 0, %10 ], [ %49, %48 ]
  %15 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 48), align 8
  %16 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 80), align 16
  %17 = getelementptr inbounds nuw ptr, ptr %16, i64 %14
  %18 = getelementptr inbounds nuw %struct.code, ptr %7, i64 %14
  %19 = load i64, ptr %18, align 8
  %20 = getelementptr inbounds nuw i8, ptr %12, i64 %19
  %21 = tail call i32 %15(ptr noundef %17, ptr noundef nonnull %20)
  %22 = icmp eq i32 %21, 209
  br i1 %22, label %23, label %31

23:                                               ; preds = %13
  %24 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 48), align 8
  %25 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 80), align 16
  %26 = getelementptr inbounds nuw ptr, ptr %25, i64 %14
  %27 = getelementptr inbounds nuw i8, ptr %18, i64 8
  %28 = load i64, ptr %27, align 8
  %29 = getelementptr inbounds nuw i8, ptr %12, i64 %28
  %30 = tail call i32 %24(ptr noundef %26, ptr noundef nonnull %29)
  br label %31

31:                                               ; preds = %23, %13
  %32 = phi i32 [ %30, %23 ], [ %21, %13 ]
  switch i32 %32, label %37 [
    i32 209, label %33
    i32 0, label %48
  ]

33:                                               ; preds = %31
  %34 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 24), align 8
  %35 = getelementptr inbounds nuw i8, ptr %12, i64 %34
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  %36 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %5, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.49, ptr noundef nonnull %35)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %5)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %92

37:                                               ; preds = %31
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  store ptr null, ptr %4, align 8
  %38 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %39 = call i32 %38(i32 noundef %32, ptr noundef nonnull %4)
  %40 = icmp eq i32 %39, 0
  %41 = load ptr, ptr %4, align 8
  %42 = icmp ne ptr %41, null
  %43 = select i1 %40, i1 %42, i1 false
  br i1 %43, label %45, label %44

44:                                               ; preds = %37
  store ptr @.str.52, ptr %4, align 8
  br label %45

45:                                               ; preds = %37, %44
  %46 = phi ptr [ %41, %37 ], [ @.str.52, %44 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %3)
  %47 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %3, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.50, ptr noundef nonnull %46)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %3)
  call void @llvm.lifetime.end.p0(ptr nonnull %3)
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  br label %92

48:                                               ; preds = %31
  %49 = add nuw i64 %14, 1
  %50 = icmp eq i64 %49, %8
  br i1 %50, label %51, label %13

51:                                               ; preds = %48, %0
  %52 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 64), align 8
  %53 = getelementptr inbounds nuw i64, ptr @ansor_deploy_gpu_program, i64 %52
  %54 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 72), align 8
  %55 = icmp eq i64 %54, 0
  br i1 %55, label %92, label %56

56:                                               ; preds = %51
  %57 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 40), align 8
  %58 = getelementptr inbounds nuw i64, ptr @ansor_deploy_gpu_program, i64 %57
  br label %59

59:                                               ; preds = %56, %89
  %60 = phi i64 [ 0, %56 ], [ %90, %89 ]
  %61 = getelementptr inbounds nuw %struct.launch, ptr %53, i64 %60
  %62 = getelementptr inbounds nuw i8, ptr %61, i64 16
  %63 = load i64, ptr %62, align 8
  %64 = icmp eq i64 %63, 0
  br i1 %64, label %89, label %65

65:                                               ; preds = %59
  %66 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 64), align 8
  %67 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 88), align 8
  %68 = getelementptr inbounds nuw ptr, ptr %67, i64 %60
  %69 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 80), align 16
  %70 = load i64, ptr %61, align 8
  %71 = getelementptr inbounds nuw ptr, ptr %69, i64 %70
  %72 = load ptr, ptr %71, align 8
  %73 = getelementptr inbounds nuw i8, ptr %61, i64 8
  %74 = load i64, ptr %73, align 8
  %75 = getelementptr inbounds nuw i8, ptr %58, i64 %74
  %76 = tail call i32 %66(ptr noundef %68, ptr noundef %72, ptr noundef nonnull %75)
  %77 = icmp eq i32 %76, 0
  br i1 %77, label %89, label %78

78:                                               ; preds = %65
  call void @llvm.lifetime.start.p0(ptr nonnull %2)
  store ptr null, ptr %2, align 8
  %79 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 104), align 8
  %80 = call i32 %79(i32 noundef %76, ptr noundef nonnull %2)
  %81 = icmp eq i32 %80, 0
  %82 = load ptr, ptr %2, align 8
  %83 = icmp ne ptr %82, null
  %84 = select i1 %81, i1 %83, i1 false
  br i1 %84, label %86, label %85

85:                                               ; preds = %78
  store ptr @.str.52, ptr %2, align 8
  br label %86

86:                                               ; preds = %78, %85
  %87 = phi ptr [ %82, %78 ], [ @.str.52, %85 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %1)
  %88 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %1, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.51, ptr noundef nonnull %87)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %1)
  call void @llvm.lifetime.end.p0(ptr nonnull %1)
  call void @llvm.lifetime.end.p0(ptr nonnull %2)
  br label %92

89:                                               ; preds = %65, %59
  %90 = add nuw i64 %60, 1
  %91 = icmp eq i64 %90, %54
  br i1 %91, label %92, label %59

92:                                               ; preds = %89, %86, %51, %33, %45
  %93 = phi i32 [ -1, %33 ], [ -1, %45 ], [ -1, %86 ], [ 0, %51 ], [ 0, %89 ]
  ret i32 %93
}

declare ptr @TVMFFIEnvGetStream(i32 noundef, i32 noundef)

define internal fastcc i32 @start_kernel(i64 noundef %0, ptr noundef %1) {
  %3 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 64), align 8
  %4 = getelementptr inbounds nuw i64, ptr @ansor_deploy_gpu_program, i64 %3
  %5 = getelementptr inbounds nuw %struct.launch, ptr %4, i64 %0
  %6 = load i64, ptr getelementptr inbounds nuw (i8, ptr @ansor_deploy_gpu_program, i64 32), align 8
  %7 = getelementptr inbounds nuw i8, ptr %5, i64 64
  %8 = load i64, ptr %7, align 8
  %9 = getelementptr i64, ptr @ansor_deploy_gpu_program, i64 %6
  %10 = getelementptr i64, ptr %9, i64 %8
  %11 = getelementptr inbounds nuw i8, ptr %5, i64 72
  %12 = load i64, ptr %11, align 8
  %13 = add i64 %12, 1
  %14 = alloca i64, i64 %13, align 16
  %15 = alloca ptr, i64 %13, align 16
  %16 = icmp eq i64 %12, 0
  br i1 %16, label %20, label %17

17:                                               ; preds = %2
  %18 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 104), align 8
  %19 = load i64, ptr getelementptr inbounds nuw (i8, ptr @state, i64 96), align 16
  br label %44

20:                                               ; preds = %44, %2
  %21 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @cuda, i64 112), align 8
  %22 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @state, i64 88), align 8
  %23 = getelementptr inbounds nuw ptr, ptr %22, i64 %0
  %24 = load ptr, ptr %23, align 8
  %25 = getelementptr inbounds nuw i8, ptr %5, i64 16
  %26 = load i64, ptr %25, align 8
  %27 = trunc i64 %26 to i32
  %28 = getelementptr inbounds nuw i8, ptr %5, i64 24
  %29 = load i64, ptr %28, align 8
  %30 = trunc i64 %29 to i32
  %31 = getelementptr inbounds nuw i8, ptr %5, i64 32
  %32 = load i64, ptr %31, align 8
  %33 = trunc i64 %32 to i32
  %34 = getelementptr inbounds nuw i8, ptr %5, i64 40
  %35 = load i64, ptr %34, align 8
  %36 = trunc i64 %35 to i32
  %37 = getelementptr inbounds nuw i8, ptr %5, i64 48
  %38 = load i64, ptr %37, align 8
  %39 = trunc i64 %38 to i32
  %40 = getelementptr inbounds nuw i8, ptr %5, i64 56
  %41 = load i64, ptr %40, align 8
  %42 = trunc i64 %41 to i32
  %43 = call i32 %21(ptr noundef %24, i32 noundef %27, i32 noundef %30, i32 noundef %33, i32 noundef %36, i32 noundef %39, i32 noundef %42, i32 noundef 0, ptr noundef %1, ptr noundef nonnull %15, ptr noundef null)
  ret i32 %43

44:                                               ; preds = %17, %44
  %45 = phi i64 [ 0, %17 ], [ %55, %44 ]
  %46 = getelementptr inbounds nuw i64, ptr %10, i64 %45
  %47 = load i64, ptr %46, align 8
  %48 = and i64 %47, 9223372036854775807
  %49 = add i64 %18, %48
  %50 = add i64 %19, %47
  %51 = icmp slt i64 %47, 0
  %52 = select i1 %51, i64 %49, i64 %50
  %53 = getelementptr inbounds nuw i64, ptr %14, i64 %45
  store i64 %52, ptr %53, align 8
  %54 = getelementptr inbounds nuw ptr, ptr %15, i64 %45
  store ptr %53, ptr %54, align 8
  %55 = add nuw i64 %45, 1
  %56 = icmp eq i64 %55, %12
  br i1 %56, label %20, label %44
}

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg)

declare i64 @llvm.umax.i64(i64, i64)
