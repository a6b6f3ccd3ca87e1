; Made by docs/make_llvm.py of launcher.c, db7cb3ae80b576813542c5deef56ef7c2395180d595e46693e3b42c8f8ab9129
%struct.anon = type { %struct.opaque, i32, i32, ptr, ptr, ptr, i64, i64 }
%struct.opaque = type { [64 x i8] }
%struct.program = type { i64, i64, i64, i64, i64, i64, %struct.table, %struct.table, %struct.table }
%struct.table = type { i64, i64 }
%struct.driver = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
%struct.any = type { i32, i32, ptr }
%struct.managed = type { %struct.tensor, ptr, ptr }
%struct.tensor = type { ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64 }
%struct.run = type { i64, i64, i64, i64, i64, i64 }
%struct.place = type { i64, i64 }
%struct.code = type { i64, i64 }
%struct.launch = type { i64, i64, [3 x i64], [3 x i64], i64, i64 }

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
@names = internal constant [15 x ptr] [ptr @.str.16, ptr @.str.17, ptr @.str.18, ptr @.str.19, ptr @.str.20, ptr @.str.21, ptr @.str.22, ptr @.str.23, ptr @.str.24, ptr @.str.25, ptr @.str.26, ptr @.str.27, ptr @.str.28, ptr @.str.29, ptr @.str.30], align 16
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
@.str.28 = private constant [16 x i8] c"cuMemcpyDtoH_v2\00", align 1
@.str.29 = private constant [17 x i8] c"cuGetErrorString\00", align 1
@.str.30 = private constant [15 x i8] c"cuLaunchKernel\00", align 1
@.str.31 = private constant [33 x i8] c"no device memory for the weights\00", align 1
@.str.32 = private constant [33 x i8] c"no device memory for the tensors\00", align 1
@.str.33 = private constant [37 x i8] c"this GPU is older than the library's\00", align 1
@.str.34 = private constant [26 x i8] c"a kernel cannot be loaded\00", align 1
@.str.35 = private constant [22 x i8] c"a kernel is not there\00", align 1
@.str.36 = private constant [42 x i8] c"an error that the driver has no words for\00", align 1
@.str.37 = private constant [26 x i8] c"an input cannot be copied\00", align 1
@.str.38 = private constant [27 x i8] c"an output cannot be copied\00", align 1
@.str.39 = private constant [30 x i8] c"the indices cannot be checked\00", align 1
@.str.40 = private constant [11 x i8] c"IndexError\00", align 1

define i32 @__tvm_ffi_ansor_deploy_gpu_load(ptr nocapture noundef readnone %0, ptr nocapture noundef readonly %1, i32 noundef %2, ptr noundef %3) {
  %5 = alloca [512 x i8], align 16
  %6 = alloca [512 x i8], align 16
  %7 = alloca ptr, align 8
  %8 = alloca [512 x i8], align 16
  %9 = alloca ptr, align 8
  %10 = alloca [512 x i8], align 16
  %11 = alloca ptr, align 8
  %12 = alloca [512 x i8], align 16
  %13 = alloca [512 x i8], align 16
  %14 = alloca ptr, align 8
  %15 = alloca [512 x i8], align 16
  %16 = alloca [512 x i8], align 16
  %17 = icmp eq i32 %2, 1
  br i1 %17, label %18, label %21

18:                                               ; preds = %4
  %19 = load i32, ptr %1, align 8
  %20 = icmp eq i32 %19, 70
  br i1 %20, label %23, label %21

21:                                               ; preds = %18, %4
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %16)
  %22 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %16, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str, ptr noundef nonnull @.str.1)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %16)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %16)
  br label %149

23:                                               ; preds = %18
  %24 = tail call dereferenceable_or_null(64) ptr @calloc(i64 noundef 1, i64 noundef 64)
  %25 = icmp eq ptr %24, null
  br i1 %25, label %26, label %28

26:                                               ; preds = %23
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %15)
  %27 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %15, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.2, ptr noundef nonnull @.str.3)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %15)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %15)
  br label %149

28:                                               ; preds = %23
  %29 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @state)
  %30 = load i32, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 1), align 16
  %31 = icmp eq i32 %30, 0
  br i1 %31, label %32, label %135

32:                                               ; preds = %28
  %33 = getelementptr inbounds %struct.any, ptr %1, i64 0, i32 2
  %34 = load ptr, ptr %33, align 8
  %35 = getelementptr inbounds i8, ptr %34, i64 24
  %36 = load ptr, ptr %35, align 8
  %37 = getelementptr inbounds i8, ptr %34, i64 64
  %38 = load i64, ptr %37, align 8
  %39 = getelementptr inbounds i8, ptr %36, i64 %38
  %40 = tail call ptr @dlopen(ptr noundef nonnull @.str.12, i32 noundef 2)
  %41 = icmp eq ptr %40, null
  br i1 %41, label %45, label %42

42:                                               ; preds = %32
  %43 = tail call ptr @dlsym(ptr noundef nonnull %40, ptr noundef nonnull @.str.16)
  store ptr %43, ptr @cuda, align 8
  %44 = icmp eq ptr %43, null
  br i1 %44, label %124, label %47

45:                                               ; preds = %32
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %13)
  %46 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %13, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.13, ptr noundef nonnull @.str.14)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %13)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %13)
  br label %133

47:                                               ; preds = %42, %51
  %48 = phi i64 [ %49, %51 ], [ 0, %42 ]
  %49 = add nuw nsw i64 %48, 1
  %50 = icmp eq i64 %49, 15
  br i1 %50, label %60, label %51

51:                                               ; preds = %47
  %52 = getelementptr inbounds [15 x ptr], ptr @names, i64 0, i64 %49
  %53 = load ptr, ptr %52, align 8
  %54 = tail call ptr @dlsym(ptr noundef nonnull %40, ptr noundef %53)
  %55 = getelementptr inbounds ptr, ptr @cuda, i64 %49
  store ptr %54, ptr %55, align 8
  %56 = icmp eq ptr %54, null
  br i1 %56, label %57, label %47

57:                                               ; preds = %51
  %58 = icmp ult i64 %48, 14
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %12)
  %59 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %12, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.15, ptr noundef %53)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %12)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %12)
  br i1 %58, label %133, label %60

60:                                               ; preds = %47, %57
  %61 = load ptr, ptr @cuda, align 8
  %62 = call i32 %61(i32 noundef 0)
  %63 = icmp eq i32 %62, 0
  br i1 %63, label %75, label %64

64:                                               ; preds = %60
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %11)
  store ptr null, ptr %11, align 8
  %65 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %66 = call i32 %65(i32 noundef %62, ptr noundef nonnull %11)
  %67 = icmp eq i32 %66, 0
  %68 = load ptr, ptr %11, align 8
  %69 = icmp ne ptr %68, null
  %70 = select i1 %67, i1 %69, i1 false
  br i1 %70, label %72, label %71

71:                                               ; preds = %64
  store ptr @.str.36, ptr %11, align 8
  br label %72

72:                                               ; preds = %71, %64
  %73 = phi ptr [ %68, %64 ], [ @.str.36, %71 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %10)
  %74 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %10, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.10, ptr noundef nonnull %73)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %10)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %10)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %11)
  br label %133

75:                                               ; preds = %60
  %76 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 1), align 8
  %77 = call i32 %76(ptr noundef nonnull getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 2), i32 noundef 0)
  %78 = icmp eq i32 %77, 0
  br i1 %78, label %90, label %79

79:                                               ; preds = %75
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %9)
  store ptr null, ptr %9, align 8
  %80 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %81 = call i32 %80(i32 noundef %77, ptr noundef nonnull %9)
  %82 = icmp eq i32 %81, 0
  %83 = load ptr, ptr %9, align 8
  %84 = icmp ne ptr %83, null
  %85 = select i1 %82, i1 %84, i1 false
  br i1 %85, label %87, label %86

86:                                               ; preds = %79
  store ptr @.str.36, ptr %9, align 8
  br label %87

87:                                               ; preds = %86, %79
  %88 = phi ptr [ %83, %79 ], [ @.str.36, %86 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %8)
  %89 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %8, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.11, ptr noundef nonnull %88)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %8)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %8)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %9)
  br label %133

90:                                               ; preds = %75
  %91 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 2), align 8
  %92 = load i32, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 2), align 4
  %93 = call i32 %91(ptr noundef nonnull getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 3), i32 noundef %92)
  %94 = icmp eq i32 %93, 0
  br i1 %94, label %106, label %95

95:                                               ; preds = %90
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %7)
  store ptr null, ptr %7, align 8
  %96 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %97 = call i32 %96(i32 noundef %93, ptr noundef nonnull %7)
  %98 = icmp eq i32 %97, 0
  %99 = load ptr, ptr %7, align 8
  %100 = icmp ne ptr %99, null
  %101 = select i1 %98, i1 %100, i1 false
  br i1 %101, label %103, label %102

102:                                              ; preds = %95
  store ptr @.str.36, ptr %7, align 8
  br label %103

103:                                              ; preds = %102, %95
  %104 = phi ptr [ %99, %95 ], [ @.str.36, %102 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %6)
  %105 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %6, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.7, ptr noundef nonnull %104)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %6)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %6)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7)
  br label %133

106:                                              ; preds = %90
  %107 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 6, i32 1), align 8
  %108 = add i64 %107, 1
  %109 = call ptr @calloc(i64 noundef %108, i64 noundef 8)
  store ptr %109, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 4), align 16
  %110 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 7, i32 1), align 8
  %111 = add i64 %110, 1
  %112 = call ptr @calloc(i64 noundef %111, i64 noundef 8)
  store ptr %112, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 5), align 8
  %113 = icmp ne ptr %109, null
  %114 = icmp ne ptr %112, null
  %115 = and i1 %113, %114
  br i1 %115, label %118, label %116

116:                                              ; preds = %106
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %5)
  %117 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %5, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.2, ptr noundef nonnull @.str.3)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %5)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %5)
  br label %133

118:                                              ; preds = %106
  %119 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 4), align 8
  %120 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 3), align 8
  %121 = call i32 %119(ptr noundef %120)
  %122 = icmp eq i32 %121, 0
  br i1 %122, label %126, label %123

123:                                              ; preds = %118
  call fastcc void @failed(ptr noundef nonnull @.str.7, i32 noundef %121)
  br label %133

124:                                              ; preds = %42
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %12)
  %125 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %12, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.15, ptr noundef nonnull @.str.16)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %12)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %12)
  br label %133

126:                                              ; preds = %118
  %127 = call fastcc i32 @fill(ptr noundef %39)
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %14)
  %128 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 5), align 8
  %129 = call i32 %128(ptr noundef nonnull %14)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %14)
  %130 = icmp eq i32 %127, 0
  br i1 %130, label %131, label %133

131:                                              ; preds = %126
  %132 = load i32, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 1), align 16
  br label %135

133:                                              ; preds = %124, %57, %45, %116, %123, %103, %87, %72, %126
  call fastcc void @clear()
  %134 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @state)
  call void @free(ptr noundef %24)
  br label %149

135:                                              ; preds = %131, %28
  %136 = phi i32 [ %132, %131 ], [ %30, %28 ]
  %137 = add i32 %136, 1
  store i32 %137, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 1), align 16
  %138 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @state)
  store ptr @state, ptr %24, align 8
  %139 = getelementptr inbounds i8, ptr %24, i64 8
  store i32 1, ptr %139, align 8
  %140 = getelementptr inbounds i8, ptr %24, i64 16
  store i32 1, ptr %140, align 8
  %141 = getelementptr inbounds i8, ptr %24, i64 20
  store i8 1, ptr %141, align 4
  %142 = getelementptr inbounds i8, ptr %24, i64 21
  store i8 8, ptr %142, align 1
  %143 = getelementptr inbounds i8, ptr %24, i64 22
  store i16 1, ptr %143, align 2
  %144 = getelementptr inbounds i8, ptr %24, i64 24
  store ptr @one, ptr %144, align 8
  %145 = getelementptr inbounds i8, ptr %24, i64 32
  store ptr @one, ptr %145, align 8
  %146 = getelementptr inbounds %struct.managed, ptr %24, i64 0, i32 2
  store ptr @leave, ptr %146, align 8
  store i32 70, ptr %3, align 8
  %147 = getelementptr inbounds %struct.any, ptr %3, i64 0, i32 2
  %148 = call i32 @TVMFFITensorFromDLPack(ptr noundef nonnull %24, i32 noundef 0, i32 noundef 0, ptr noundef nonnull %147)
  br label %149

149:                                              ; preds = %26, %135, %133, %21
  %150 = phi i32 [ -1, %21 ], [ -1, %26 ], [ -1, %133 ], [ %148, %135 ]
  ret i32 %150
}

declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture)

declare noalias noundef ptr @calloc(i64 noundef, i64 noundef)

declare i32 @pthread_mutex_lock(ptr noundef)

define internal fastcc void @clear() {
  %1 = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %1)
  %2 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 3), align 8
  %3 = icmp eq ptr %2, null
  br i1 %3, label %52, label %4

4:                                                ; preds = %0
  %5 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 4), align 8
  %6 = tail call i32 %5(ptr noundef nonnull %2)
  %7 = icmp eq i32 %6, 0
  br i1 %7, label %8, label %45

8:                                                ; preds = %4
  %9 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 6, i32 1), align 8
  %10 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 4), align 16
  %11 = icmp ne ptr %10, null
  %12 = icmp ne i64 %9, 0
  %13 = select i1 %11, i1 %12, i1 false
  br i1 %13, label %17, label %14

14:                                               ; preds = %27, %8
  %15 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 6), align 16
  %16 = icmp eq i64 %15, 0
  br i1 %16, label %36, label %33

17:                                               ; preds = %8, %27
  %18 = phi ptr [ %28, %27 ], [ %10, %8 ]
  %19 = phi i64 [ %29, %27 ], [ 0, %8 ]
  %20 = getelementptr inbounds ptr, ptr %18, i64 %19
  %21 = load ptr, ptr %20, align 8
  %22 = icmp eq ptr %21, null
  br i1 %22, label %27, label %23

23:                                               ; preds = %17
  %24 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 7), align 8
  %25 = tail call i32 %24(ptr noundef nonnull %21)
  %26 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 4), align 16
  br label %27

27:                                               ; preds = %17, %23
  %28 = phi ptr [ %18, %17 ], [ %26, %23 ]
  %29 = add nuw i64 %19, 1
  %30 = icmp ne ptr %28, null
  %31 = icmp ult i64 %29, %9
  %32 = select i1 %30, i1 %31, i1 false
  br i1 %32, label %17, label %14

33:                                               ; preds = %14
  %34 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 10), align 8
  %35 = tail call i32 %34(i64 noundef %15)
  br label %36

36:                                               ; preds = %33, %14
  %37 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 7), align 8
  %38 = icmp eq i64 %37, 0
  br i1 %38, label %42, label %39

39:                                               ; preds = %36
  %40 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 10), align 8
  %41 = tail call i32 %40(i64 noundef %37)
  br label %42

42:                                               ; preds = %39, %36
  %43 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 5), align 8
  %44 = call i32 %43(ptr noundef nonnull %1)
  br label %45

45:                                               ; preds = %42, %4
  %46 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 3), align 8
  %47 = icmp eq ptr %46, null
  br i1 %47, label %52, label %48

48:                                               ; preds = %45
  %49 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 3), align 8
  %50 = load i32, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 2), align 4
  %51 = call i32 %49(i32 noundef %50)
  br label %52

52:                                               ; preds = %0, %48, %45
  %53 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 4), align 16
  call void @free(ptr noundef %53)
  %54 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 5), align 8
  call void @free(ptr noundef %54)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(40) getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 3), i8 0, i64 40, i1 false)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %1)
  ret void
}

declare i32 @pthread_mutex_unlock(ptr noundef)

declare void @free(ptr allocptr nocapture noundef)

define internal void @leave(ptr nocapture noundef %0) {
  %2 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @state)
  %3 = load i32, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 1), align 16
  %4 = add i32 %3, -1
  store i32 %4, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 1), align 16
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

declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture)

define noundef i32 @__tvm_ffi_ansor_deploy_gpu_run(ptr nocapture noundef readnone %0, ptr nocapture noundef readonly %1, i32 noundef %2, ptr nocapture noundef readnone %3) {
  %5 = alloca [512 x i8], align 16
  %6 = alloca ptr, align 8
  %7 = alloca [512 x i8], align 16
  %8 = alloca ptr, align 8
  %9 = alloca [512 x i8], align 16
  %10 = alloca ptr, align 8
  %11 = alloca [512 x i8], align 16
  %12 = alloca [512 x i8], align 16
  %13 = alloca ptr, align 8
  %14 = icmp sgt i32 %2, 1
  br i1 %14, label %15, label %21

15:                                               ; preds = %4
  %16 = getelementptr inbounds %struct.any, ptr %1, i64 1, i32 2
  %17 = load ptr, ptr %16, align 8
  %18 = ptrtoint ptr %17 to i64
  %19 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 8, i32 1), align 8
  %20 = icmp ugt i64 %19, %18
  br i1 %20, label %23, label %21

21:                                               ; preds = %4, %15
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %12)
  %22 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %12, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.4, ptr noundef nonnull @.str.5)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %12)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %12)
  br label %166

23:                                               ; preds = %15
  %24 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 8), align 8
  %25 = getelementptr inbounds i64, ptr @ansor_deploy_gpu_program, i64 %24
  %26 = getelementptr inbounds %struct.run, ptr %25, i64 %18
  %27 = zext nneg i32 %2 to i64
  %28 = getelementptr inbounds %struct.run, ptr %25, i64 %18, i32 3
  %29 = load i64, ptr %28, align 8
  %30 = add i64 %29, 2
  %31 = getelementptr inbounds %struct.run, ptr %25, i64 %18, i32 5
  %32 = load i64, ptr %31, align 8
  %33 = add i64 %30, %32
  %34 = icmp eq i64 %33, %27
  br i1 %34, label %37, label %35

35:                                               ; preds = %23
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %11)
  %36 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %11, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.4, ptr noundef nonnull @.str.6)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %11)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %11)
  br label %166

37:                                               ; preds = %23
  %38 = tail call i32 @pthread_mutex_lock(ptr noundef nonnull @state)
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %13)
  %39 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 4), align 8
  %40 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 3), align 8
  %41 = tail call i32 %39(ptr noundef %40)
  %42 = icmp eq i32 %41, 0
  br i1 %42, label %54, label %43

43:                                               ; preds = %37
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %10)
  store ptr null, ptr %10, align 8
  %44 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %45 = call i32 %44(i32 noundef %41, ptr noundef nonnull %10)
  %46 = icmp eq i32 %45, 0
  %47 = load ptr, ptr %10, align 8
  %48 = icmp ne ptr %47, null
  %49 = select i1 %46, i1 %48, i1 false
  br i1 %49, label %51, label %50

50:                                               ; preds = %43
  store ptr @.str.36, ptr %10, align 8
  br label %51

51:                                               ; preds = %43, %50
  %52 = phi ptr [ %47, %43 ], [ @.str.36, %50 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %9)
  %53 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %9, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.7, ptr noundef nonnull %52)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %9)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %9)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %10)
  br label %163

54:                                               ; preds = %37
  %55 = getelementptr inbounds %struct.any, ptr %1, i64 2
  %56 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 4), align 8
  %57 = getelementptr inbounds %struct.run, ptr %25, i64 %18, i32 2
  %58 = load i64, ptr %57, align 8
  %59 = getelementptr i64, ptr @ansor_deploy_gpu_program, i64 %56
  %60 = getelementptr i64, ptr %59, i64 %58
  %61 = getelementptr inbounds %struct.run, ptr %25, i64 %18, i32 4
  %62 = load i64, ptr %61, align 8
  %63 = getelementptr i64, ptr %59, i64 %62
  %64 = icmp eq i64 %29, 0
  br i1 %64, label %109, label %65

65:                                               ; preds = %54, %105
  %66 = phi ptr [ %107, %105 ], [ %55, %54 ]
  %67 = phi i64 [ %106, %105 ], [ 0, %54 ]
  %68 = getelementptr inbounds %struct.place, ptr %60, i64 %67, i32 1
  %69 = load i64, ptr %68, align 8
  %70 = icmp eq i64 %69, 0
  br i1 %70, label %105, label %71

71:                                               ; preds = %65
  %72 = getelementptr inbounds %struct.place, ptr %60, i64 %67
  %73 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 11), align 8
  %74 = load i64, ptr %72, align 8
  %75 = icmp sgt i64 %74, -1
  br i1 %75, label %80, label %76

76:                                               ; preds = %71
  %77 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 7), align 8
  %78 = and i64 %74, 9223372036854775807
  %79 = add i64 %77, %78
  br label %83

80:                                               ; preds = %71
  %81 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 6), align 16
  %82 = add i64 %81, %74
  br label %83

83:                                               ; preds = %80, %76
  %84 = phi i64 [ %79, %76 ], [ %82, %80 ]
  %85 = getelementptr inbounds %struct.any, ptr %66, i64 0, i32 2
  %86 = load ptr, ptr %85, align 8
  %87 = getelementptr inbounds i8, ptr %86, i64 24
  %88 = load ptr, ptr %87, align 8
  %89 = getelementptr inbounds i8, ptr %86, i64 64
  %90 = load i64, ptr %89, align 8
  %91 = getelementptr inbounds i8, ptr %88, i64 %90
  %92 = tail call i32 %73(i64 noundef %84, ptr noundef %91, i64 noundef %69)
  %93 = icmp eq i32 %92, 0
  br i1 %93, label %105, label %94

94:                                               ; preds = %83
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %8)
  store ptr null, ptr %8, align 8
  %95 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %96 = call i32 %95(i32 noundef %92, ptr noundef nonnull %8)
  %97 = icmp eq i32 %96, 0
  %98 = load ptr, ptr %8, align 8
  %99 = icmp ne ptr %98, null
  %100 = select i1 %97, i1 %99, i1 false
  br i1 %100, label %102, label %101

101:                                              ; preds = %94
  store ptr @.str.36, ptr %8, align 8
  br label %102

102:                                              ; preds = %101, %94
  %103 = phi ptr [ %98, %94 ], [ @.str.36, %101 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %7)
  %104 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %7, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.37, ptr noundef nonnull %103)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %7)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %7)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8)
  br label %159

105:                                              ; preds = %83, %65
  %106 = add nuw i64 %67, 1
  %107 = getelementptr inbounds %struct.any, ptr %66, i64 1
  %108 = icmp eq i64 %106, %29
  br i1 %108, label %109, label %65

109:                                              ; preds = %105, %54
  %110 = phi ptr [ %55, %54 ], [ %107, %105 ]
  %111 = tail call fastcc i32 @start_kernels(ptr noundef nonnull %26)
  %112 = icmp eq i32 %111, 0
  br i1 %112, label %113, label %159

113:                                              ; preds = %109
  %114 = icmp eq i64 %32, 0
  br i1 %114, label %159, label %115

115:                                              ; preds = %113, %155
  %116 = phi i64 [ %156, %155 ], [ 0, %113 ]
  %117 = phi ptr [ %157, %155 ], [ %110, %113 ]
  %118 = getelementptr inbounds %struct.place, ptr %63, i64 %116, i32 1
  %119 = load i64, ptr %118, align 8
  %120 = icmp eq i64 %119, 0
  br i1 %120, label %155, label %121

121:                                              ; preds = %115
  %122 = getelementptr inbounds %struct.place, ptr %63, i64 %116
  %123 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 12), align 8
  %124 = getelementptr inbounds %struct.any, ptr %117, i64 0, i32 2
  %125 = load ptr, ptr %124, align 8
  %126 = getelementptr inbounds i8, ptr %125, i64 24
  %127 = load ptr, ptr %126, align 8
  %128 = getelementptr inbounds i8, ptr %125, i64 64
  %129 = load i64, ptr %128, align 8
  %130 = getelementptr inbounds i8, ptr %127, i64 %129
  %131 = load i64, ptr %122, align 8
  %132 = icmp sgt i64 %131, -1
  br i1 %132, label %137, label %133

133:                                              ; preds = %121
  %134 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 7), align 8
  %135 = and i64 %131, 9223372036854775807
  %136 = add i64 %134, %135
  br label %140

137:                                              ; preds = %121
  %138 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 6), align 16
  %139 = add i64 %138, %131
  br label %140

140:                                              ; preds = %137, %133
  %141 = phi i64 [ %136, %133 ], [ %139, %137 ]
  %142 = tail call i32 %123(ptr noundef %130, i64 noundef %141, i64 noundef %119)
  %143 = icmp eq i32 %142, 0
  br i1 %143, label %155, label %144

144:                                              ; preds = %140
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %6)
  store ptr null, ptr %6, align 8
  %145 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %146 = call i32 %145(i32 noundef %142, ptr noundef nonnull %6)
  %147 = icmp eq i32 %146, 0
  %148 = load ptr, ptr %6, align 8
  %149 = icmp ne ptr %148, null
  %150 = select i1 %147, i1 %149, i1 false
  br i1 %150, label %152, label %151

151:                                              ; preds = %144
  store ptr @.str.36, ptr %6, align 8
  br label %152

152:                                              ; preds = %151, %144
  %153 = phi ptr [ %148, %144 ], [ @.str.36, %151 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %5)
  %154 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %5, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.38, ptr noundef nonnull %153)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %5)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %5)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6)
  br label %159

155:                                              ; preds = %140, %115
  %156 = add nuw i64 %116, 1
  %157 = getelementptr inbounds %struct.any, ptr %117, i64 1
  %158 = icmp eq i64 %156, %32
  br i1 %158, label %159, label %115

159:                                              ; preds = %155, %102, %109, %113, %152
  %160 = phi i32 [ -1, %102 ], [ -1, %109 ], [ -1, %152 ], [ 0, %113 ], [ 0, %155 ]
  %161 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 5), align 8
  %162 = call i32 %161(ptr noundef nonnull %13)
  br label %163

163:                                              ; preds = %159, %51
  %164 = phi i32 [ -1, %51 ], [ %160, %159 ]
  %165 = call i32 @pthread_mutex_unlock(ptr noundef nonnull @state)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %13)
  br label %166

166:                                              ; preds = %35, %163, %21
  %167 = phi i32 [ -1, %21 ], [ -1, %35 ], [ %164, %163 ]
  ret i32 %167
}

define internal fastcc void @failed(ptr noundef %0, i32 noundef %1) {
  %3 = alloca [512 x i8], align 16
  %4 = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %4)
  store ptr null, ptr %4, align 8
  %5 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %6 = call i32 %5(i32 noundef %1, ptr noundef nonnull %4)
  %7 = icmp eq i32 %6, 0
  %8 = load ptr, ptr %4, align 8
  %9 = icmp ne ptr %8, null
  %10 = select i1 %7, i1 %9, i1 false
  br i1 %10, label %12, label %11

11:                                               ; preds = %2
  store ptr @.str.36, ptr %4, align 8
  br label %12

12:                                               ; preds = %2, %11
  %13 = phi ptr [ %8, %2 ], [ @.str.36, %11 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %3)
  %14 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %3, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef %0, ptr noundef nonnull %13)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %3)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %3)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %4)
  ret void
}

declare noundef i32 @snprintf(ptr noalias nocapture noundef writeonly, i64 noundef, ptr nocapture noundef readonly, ...)

declare void @TVMFFIErrorSetRaisedFromCStr(ptr noundef, ptr noundef)

define internal fastcc i32 @fill(ptr noundef %0) {
  %2 = alloca [512 x i8], align 16
  %3 = alloca ptr, align 8
  %4 = alloca [512 x i8], align 16
  %5 = alloca ptr, align 8
  %6 = alloca [512 x i8], align 16
  %7 = alloca [512 x i8], align 16
  %8 = alloca ptr, align 8
  %9 = alloca [512 x i8], align 16
  %10 = alloca ptr, align 8
  %11 = alloca [512 x i8], align 16
  %12 = alloca ptr, align 8
  %13 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 9), align 8
  %14 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 1), align 8
  %15 = tail call i32 %13(ptr noundef nonnull getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 6), i64 noundef %14)
  %16 = icmp eq i32 %15, 0
  br i1 %16, label %28, label %17

17:                                               ; preds = %1
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %12)
  store ptr null, ptr %12, align 8
  %18 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %19 = call i32 %18(i32 noundef %15, ptr noundef nonnull %12)
  %20 = icmp eq i32 %19, 0
  %21 = load ptr, ptr %12, align 8
  %22 = icmp ne ptr %21, null
  %23 = select i1 %20, i1 %22, i1 false
  br i1 %23, label %25, label %24

24:                                               ; preds = %17
  store ptr @.str.36, ptr %12, align 8
  br label %25

25:                                               ; preds = %24, %17
  %26 = phi ptr [ %21, %17 ], [ @.str.36, %24 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %11)
  %27 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %11, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.31, ptr noundef nonnull %26)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %11)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %11)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %12)
  br label %152

28:                                               ; preds = %1
  %29 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 9), align 8
  %30 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 2), align 8
  %31 = tail call i32 %29(ptr noundef nonnull getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 7), i64 noundef %30)
  %32 = icmp eq i32 %31, 0
  br i1 %32, label %44, label %33

33:                                               ; preds = %28
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %10)
  store ptr null, ptr %10, align 8
  %34 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %35 = call i32 %34(i32 noundef %31, ptr noundef nonnull %10)
  %36 = icmp eq i32 %35, 0
  %37 = load ptr, ptr %10, align 8
  %38 = icmp ne ptr %37, null
  %39 = select i1 %36, i1 %38, i1 false
  br i1 %39, label %41, label %40

40:                                               ; preds = %33
  store ptr @.str.36, ptr %10, align 8
  br label %41

41:                                               ; preds = %40, %33
  %42 = phi ptr [ %37, %33 ], [ @.str.36, %40 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %9)
  %43 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %9, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.32, ptr noundef nonnull %42)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %9)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %9)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %10)
  br label %152

44:                                               ; preds = %28
  %45 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 11), align 8
  %46 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 6), align 16
  %47 = tail call i32 %45(i64 noundef %46, ptr noundef %0, i64 noundef %14)
  %48 = icmp eq i32 %47, 0
  br i1 %48, label %60, label %49

49:                                               ; preds = %44
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %8)
  store ptr null, ptr %8, align 8
  %50 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %51 = call i32 %50(i32 noundef %47, ptr noundef nonnull %8)
  %52 = icmp eq i32 %51, 0
  %53 = load ptr, ptr %8, align 8
  %54 = icmp ne ptr %53, null
  %55 = select i1 %52, i1 %54, i1 false
  br i1 %55, label %57, label %56

56:                                               ; preds = %49
  store ptr @.str.36, ptr %8, align 8
  br label %57

57:                                               ; preds = %56, %49
  %58 = phi ptr [ %53, %49 ], [ @.str.36, %56 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %7)
  %59 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %7, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str, ptr noundef nonnull %58)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %7)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %7)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8)
  br label %152

60:                                               ; preds = %44
  %61 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 6), align 8
  %62 = getelementptr inbounds i64, ptr @ansor_deploy_gpu_program, i64 %61
  %63 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 6, i32 1), align 8
  %64 = icmp eq i64 %63, 0
  br i1 %64, label %106, label %65

65:                                               ; preds = %60
  %66 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 5), align 8
  %67 = getelementptr inbounds i64, ptr @ansor_deploy_gpu_program, i64 %66
  br label %68

68:                                               ; preds = %103, %65
  %69 = phi i64 [ 0, %65 ], [ %104, %103 ]
  %70 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 6), align 8
  %71 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 4), align 16
  %72 = getelementptr inbounds ptr, ptr %71, i64 %69
  %73 = getelementptr inbounds %struct.code, ptr %62, i64 %69
  %74 = load i64, ptr %73, align 8
  %75 = getelementptr inbounds i8, ptr %67, i64 %74
  %76 = tail call i32 %70(ptr noundef %72, ptr noundef nonnull %75)
  %77 = icmp eq i32 %76, 209
  br i1 %77, label %78, label %86

78:                                               ; preds = %68
  %79 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 6), align 8
  %80 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 4), align 16
  %81 = getelementptr inbounds ptr, ptr %80, i64 %69
  %82 = getelementptr inbounds %struct.code, ptr %62, i64 %69, i32 1
  %83 = load i64, ptr %82, align 8
  %84 = getelementptr inbounds i8, ptr %67, i64 %83
  %85 = tail call i32 %79(ptr noundef %81, ptr noundef nonnull %84)
  br label %86

86:                                               ; preds = %78, %68
  %87 = phi i32 [ %85, %78 ], [ %76, %68 ]
  switch i32 %87, label %92 [
    i32 209, label %88
    i32 0, label %103
  ]

88:                                               ; preds = %86
  %89 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 3), align 8
  %90 = getelementptr inbounds i8, ptr %67, i64 %89
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %6)
  %91 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %6, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.33, ptr noundef nonnull %90)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %6)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %6)
  br label %152

92:                                               ; preds = %86
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %5)
  store ptr null, ptr %5, align 8
  %93 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %94 = call i32 %93(i32 noundef %87, ptr noundef nonnull %5)
  %95 = icmp eq i32 %94, 0
  %96 = load ptr, ptr %5, align 8
  %97 = icmp ne ptr %96, null
  %98 = select i1 %95, i1 %97, i1 false
  br i1 %98, label %100, label %99

99:                                               ; preds = %92
  store ptr @.str.36, ptr %5, align 8
  br label %100

100:                                              ; preds = %99, %92
  %101 = phi ptr [ %96, %92 ], [ @.str.36, %99 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %4)
  %102 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %4, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.34, ptr noundef nonnull %101)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %4)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %4)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5)
  br label %152

103:                                              ; preds = %86
  %104 = add nuw i64 %69, 1
  %105 = icmp eq i64 %104, %63
  br i1 %105, label %106, label %68

106:                                              ; preds = %103, %60
  %107 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 7), align 8
  %108 = getelementptr inbounds i64, ptr @ansor_deploy_gpu_program, i64 %107
  %109 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 7, i32 1), align 8
  %110 = icmp eq i64 %109, 0
  br i1 %110, label %149, label %111

111:                                              ; preds = %106
  %112 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 5), align 8
  %113 = getelementptr inbounds i64, ptr @ansor_deploy_gpu_program, i64 %112
  br label %114

114:                                              ; preds = %145, %111
  %115 = phi i1 [ true, %111 ], [ %147, %145 ]
  %116 = phi i64 [ 0, %111 ], [ %146, %145 ]
  %117 = getelementptr inbounds %struct.launch, ptr %108, i64 %116, i32 2
  %118 = load i64, ptr %117, align 8
  %119 = icmp eq i64 %118, 0
  br i1 %119, label %145, label %120

120:                                              ; preds = %114
  %121 = getelementptr inbounds %struct.launch, ptr %108, i64 %116
  %122 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 8), align 8
  %123 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 5), align 8
  %124 = getelementptr inbounds ptr, ptr %123, i64 %116
  %125 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 4), align 16
  %126 = load i64, ptr %121, align 8
  %127 = getelementptr inbounds ptr, ptr %125, i64 %126
  %128 = load ptr, ptr %127, align 8
  %129 = getelementptr inbounds %struct.launch, ptr %108, i64 %116, i32 1
  %130 = load i64, ptr %129, align 8
  %131 = getelementptr inbounds i8, ptr %113, i64 %130
  %132 = tail call i32 %122(ptr noundef %124, ptr noundef %128, ptr noundef nonnull %131)
  %133 = icmp eq i32 %132, 0
  br i1 %133, label %145, label %134

134:                                              ; preds = %120
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %3)
  store ptr null, ptr %3, align 8
  %135 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %136 = call i32 %135(i32 noundef %132, ptr noundef nonnull %3)
  %137 = icmp eq i32 %136, 0
  %138 = load ptr, ptr %3, align 8
  %139 = icmp ne ptr %138, null
  %140 = select i1 %137, i1 %139, i1 false
  br i1 %140, label %142, label %141

141:                                              ; preds = %134
  store ptr @.str.36, ptr %3, align 8
  br label %142

142:                                              ; preds = %141, %134
  %143 = phi ptr [ %138, %134 ], [ @.str.36, %141 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %2)
  %144 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %2, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.35, ptr noundef nonnull %143)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %2)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %2)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %3)
  br label %149

145:                                              ; preds = %120, %114
  %146 = add nuw i64 %116, 1
  %147 = icmp ult i64 %146, %109
  %148 = icmp eq i64 %146, %109
  br i1 %148, label %149, label %114

149:                                              ; preds = %145, %142, %106
  %150 = phi i1 [ %115, %142 ], [ false, %106 ], [ %147, %145 ]
  %151 = sext i1 %150 to i32
  br label %152

152:                                              ; preds = %149, %100, %88, %57, %41, %25
  %153 = phi i32 [ -1, %25 ], [ -1, %41 ], [ -1, %57 ], [ %151, %149 ], [ -1, %88 ], [ -1, %100 ]
  ret i32 %153
}

declare ptr @dlopen(ptr noundef, i32 noundef)

declare ptr @dlsym(ptr noundef, ptr noundef)

define internal fastcc noundef i32 @start_kernels(ptr nocapture noundef readonly %0) {
  %2 = alloca [512 x i8], align 16
  %3 = alloca ptr, align 8
  %4 = alloca [512 x i8], align 16
  %5 = alloca ptr, align 8
  %6 = alloca i32, align 4
  %7 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 7), align 8
  %8 = getelementptr inbounds i64, ptr @ansor_deploy_gpu_program, i64 %7
  %9 = load i64, ptr %0, align 8
  %10 = getelementptr inbounds %struct.launch, ptr %8, i64 %9
  %11 = getelementptr inbounds %struct.run, ptr %0, i64 0, i32 1
  %12 = load i64, ptr %11, align 8
  %13 = icmp eq i64 %12, 0
  br i1 %13, label %132, label %14

14:                                               ; preds = %1
  %15 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 4), align 8
  %16 = getelementptr i64, ptr @ansor_deploy_gpu_program, i64 %15
  %17 = load i64, ptr getelementptr inbounds (%struct.program, ptr @ansor_deploy_gpu_program, i64 0, i32 5), align 8
  %18 = getelementptr inbounds i64, ptr @ansor_deploy_gpu_program, i64 %17
  br label %19

19:                                               ; preds = %14, %128
  %20 = phi i64 [ 0, %14 ], [ %129, %128 ]
  %21 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 4
  %22 = load i64, ptr %21, align 8
  %23 = getelementptr i64, ptr %16, i64 %22
  %24 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 2
  %25 = load i64, ptr %24, align 8
  %26 = icmp eq i64 %25, 0
  br i1 %26, label %27, label %64

27:                                               ; preds = %19
  %28 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 1
  %29 = load i64, ptr %28, align 8
  %30 = getelementptr inbounds i8, ptr %18, i64 %29
  %31 = load i64, ptr %23, align 8
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %6)
  store i32 0, ptr %6, align 4
  %32 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 12), align 8
  %33 = icmp sgt i64 %31, -1
  br i1 %33, label %38, label %34

34:                                               ; preds = %27
  %35 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 7), align 8
  %36 = and i64 %31, 9223372036854775807
  %37 = add i64 %35, %36
  br label %41

38:                                               ; preds = %27
  %39 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 6), align 16
  %40 = add i64 %39, %31
  br label %41

41:                                               ; preds = %38, %34
  %42 = phi i64 [ %37, %34 ], [ %40, %38 ]
  %43 = call i32 %32(ptr noundef nonnull %6, i64 noundef %42, i64 noundef 4)
  %44 = icmp eq i32 %43, 0
  br i1 %44, label %56, label %45

45:                                               ; preds = %41
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %5)
  store ptr null, ptr %5, align 8
  %46 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %47 = call i32 %46(i32 noundef %43, ptr noundef nonnull %5)
  %48 = icmp eq i32 %47, 0
  %49 = load ptr, ptr %5, align 8
  %50 = icmp ne ptr %49, null
  %51 = select i1 %48, i1 %50, i1 false
  br i1 %51, label %53, label %52

52:                                               ; preds = %45
  store ptr @.str.36, ptr %5, align 8
  br label %53

53:                                               ; preds = %45, %52
  %54 = phi ptr [ %49, %45 ], [ @.str.36, %52 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %4)
  %55 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %4, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull @.str.39, ptr noundef nonnull %54)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %4)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %4)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5)
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %6)
  br label %132

56:                                               ; preds = %41
  %57 = load i32, ptr %6, align 4
  %58 = icmp eq i32 %57, 0
  br i1 %58, label %59, label %60

59:                                               ; preds = %56
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %6)
  br label %128

60:                                               ; preds = %56
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.40, ptr noundef nonnull %30)
  %61 = load i32, ptr %6, align 4
  %62 = freeze i32 %61
  %63 = icmp eq i32 %62, 0
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %6)
  br i1 %63, label %128, label %132

64:                                               ; preds = %19
  %65 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 5
  %66 = load i64, ptr %65, align 8
  %67 = add i64 %66, 1
  %68 = call ptr @llvm.stacksave.p0()
  %69 = alloca i64, i64 %67, align 16
  %70 = alloca ptr, i64 %67, align 16
  %71 = icmp eq i64 %66, 0
  br i1 %71, label %75, label %72

72:                                               ; preds = %64
  %73 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 7), align 8
  %74 = load i64, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 6), align 16
  br label %100

75:                                               ; preds = %100, %64
  %76 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 14), align 8
  %77 = load ptr, ptr getelementptr inbounds (%struct.anon, ptr @state, i64 0, i32 5), align 8
  %78 = load i64, ptr %0, align 8
  %79 = getelementptr ptr, ptr %77, i64 %78
  %80 = getelementptr ptr, ptr %79, i64 %20
  %81 = load ptr, ptr %80, align 8
  %82 = trunc i64 %25 to i32
  %83 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 2, i64 1
  %84 = load i64, ptr %83, align 8
  %85 = trunc i64 %84 to i32
  %86 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 2, i64 2
  %87 = load i64, ptr %86, align 8
  %88 = trunc i64 %87 to i32
  %89 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 3
  %90 = load i64, ptr %89, align 8
  %91 = trunc i64 %90 to i32
  %92 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 3, i64 1
  %93 = load i64, ptr %92, align 8
  %94 = trunc i64 %93 to i32
  %95 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 3, i64 2
  %96 = load i64, ptr %95, align 8
  %97 = trunc i64 %96 to i32
  %98 = call i32 %76(ptr noundef %81, i32 noundef %82, i32 noundef %85, i32 noundef %88, i32 noundef %91, i32 noundef %94, i32 noundef %97, i32 noundef 0, ptr noundef null, ptr noundef nonnull %70, ptr noundef null)
  %99 = icmp eq i32 %98, 0
  br i1 %99, label %127, label %113

100:                                              ; preds = %72, %100
  %101 = phi i64 [ 0, %72 ], [ %111, %100 ]
  %102 = getelementptr inbounds i64, ptr %23, i64 %101
  %103 = load i64, ptr %102, align 8
  %104 = and i64 %103, 9223372036854775807
  %105 = add i64 %73, %104
  %106 = add i64 %74, %103
  %107 = icmp slt i64 %103, 0
  %108 = select i1 %107, i64 %105, i64 %106
  %109 = getelementptr inbounds i64, ptr %69, i64 %101
  store i64 %108, ptr %109, align 8
  %110 = getelementptr inbounds ptr, ptr %70, i64 %101
  store ptr %109, ptr %110, align 8
  %111 = add nuw i64 %101, 1
  %112 = icmp eq i64 %111, %66
  br i1 %112, label %75, label %100

113:                                              ; preds = %75
  %114 = getelementptr inbounds %struct.launch, ptr %10, i64 %20, i32 1
  %115 = load i64, ptr %114, align 8
  %116 = getelementptr inbounds i8, ptr %18, i64 %115
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %3)
  store ptr null, ptr %3, align 8
  %117 = load ptr, ptr getelementptr inbounds (%struct.driver, ptr @cuda, i64 0, i32 13), align 8
  %118 = call i32 %117(i32 noundef %98, ptr noundef nonnull %3)
  %119 = icmp eq i32 %118, 0
  %120 = load ptr, ptr %3, align 8
  %121 = icmp ne ptr %120, null
  %122 = select i1 %119, i1 %121, i1 false
  br i1 %122, label %124, label %123

123:                                              ; preds = %113
  store ptr @.str.36, ptr %3, align 8
  br label %124

124:                                              ; preds = %123, %113
  %125 = phi ptr [ %120, %113 ], [ @.str.36, %123 ]
  call void @llvm.lifetime.start.p0(i64 512, ptr nonnull %2)
  %126 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %2, i64 noundef 512, ptr noundef nonnull @.str.8, ptr noundef nonnull %116, ptr noundef nonnull %125)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str.9, ptr noundef nonnull %2)
  call void @llvm.lifetime.end.p0(i64 512, ptr nonnull %2)
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %3)
  call void @llvm.stackrestore.p0(ptr %68)
  br label %132

127:                                              ; preds = %75
  call void @llvm.stackrestore.p0(ptr %68)
  br label %128

128:                                              ; preds = %59, %60, %127
  %129 = add nuw i64 %20, 1
  %130 = load i64, ptr %11, align 8
  %131 = icmp ult i64 %129, %130
  br i1 %131, label %19, label %132

132:                                              ; preds = %128, %60, %1, %53, %124
  %133 = phi i32 [ -1, %53 ], [ -1, %124 ], [ 0, %1 ], [ 0, %128 ], [ -1, %60 ]
  ret i32 %133
}

declare ptr @llvm.stacksave.p0()

declare void @llvm.stackrestore.p0(ptr)

declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg)
