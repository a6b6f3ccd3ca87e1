; Made by docs/make_llvm.py of processor.c, ef0b2b445627f466d004756a7ff4b1fb88c0cec72205302f56c4a0893e08134c
%struct.any = type { i32, i32, i64 }
%struct.feature = type { [16 x i8], i32, i32 }

@ansor_deploy_codes = external hidden constant [0 x i8], align 1
@__const.__tvm_ffi_choose_code.cores = private constant %struct.any { i32 1, i32 0, i64 0 }, align 8
@__tvm_ffi_choose_code.set = internal global i32 0, align 4
@.str = private constant [13 x i8] c"RuntimeError\00", align 1
@.str.1 = private constant [30 x i8] c"it has no code of that number\00", align 1
@.str.2 = private constant [7 x i8] c"%s%.*s\00", align 1
@.str.3 = private constant [3 x i8] c", \00", align 1
@.str.4 = private constant [1 x i8] zeroinitializer, align 1
@features = internal constant [13 x %struct.feature] [%struct.feature { [16 x i8] c"neon\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 1 }, %struct.feature { [16 x i8] c"lse\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 8 }, %struct.feature { [16 x i8] c"fullfp16\00\00\00\00\00\00\00\00", i32 0, i32 10 }, %struct.feature { [16 x i8] c"rdm\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 12 }, %struct.feature { [16 x i8] c"complxnum\00\00\00\00\00\00\00", i32 0, i32 14 }, %struct.feature { [16 x i8] c"rcpc\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 15 }, %struct.feature { [16 x i8] c"dotprod\00\00\00\00\00\00\00\00\00", i32 0, i32 20 }, %struct.feature { [16 x i8] c"sve\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 22 }, %struct.feature { [16 x i8] c"fp16fml\00\00\00\00\00\00\00\00\00", i32 0, i32 23 }, %struct.feature { [16 x i8] c"sve2\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 1 }, %struct.feature { [16 x i8] c"fptoint\00\00\00\00\00\00\00\00\00", i32 1, i32 8 }, %struct.feature { [16 x i8] c"i8mm\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 13 }, %struct.feature { [16 x i8] c"bf16\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 14 }], align 4
@.str.5 = private constant [128 x i8] c"it is built for a processor with %s, which this one (%s%s%s) lacks; build it with %s, or for both in one file with --target A,B\00", align 1
@.str.6 = private constant [8 x i8] c"aarch64\00", align 1
@.str.7 = private constant [32 x i8] c"a target without these features\00", align 1

define range(i32 -1, 1) i32 @__tvm_ffi_choose_code(ptr noundef %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef %3) {
  %5 = alloca [400 x i8], align 1
  %6 = alloca [49 x i8], align 1
  %7 = alloca [700 x i8], align 1
  %8 = alloca [2 x i32], align 4
  %9 = alloca %struct.any, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %8)
  call void @llvm.lifetime.start.p0(ptr nonnull %9)
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %9, ptr noundef nonnull align 8 dereferenceable(16) @__const.__tvm_ffi_choose_code.cores, i64 16, i1 false)
  br label %10

10:                                               ; preds = %13, %4
  %11 = phi ptr [ @ansor_deploy_codes, %4 ], [ %14, %13 ]
  %12 = load i8, ptr %11, align 1
  switch i8 %12, label %13 [
    i8 0, label %15
    i8 59, label %15
  ]

13:                                               ; preds = %10
  %14 = getelementptr inbounds nuw i8, ptr %11, i64 1
  br label %10

15:                                               ; preds = %10, %10
  %16 = icmp eq i8 %12, 0
  %17 = tail call i64 @getauxval(i64 noundef 16)
  %18 = trunc i64 %17 to i32
  store i32 %18, ptr %8, align 4
  %19 = tail call i64 @getauxval(i64 noundef 26)
  %20 = trunc i64 %19 to i32
  %21 = getelementptr inbounds nuw i8, ptr %8, i64 4
  store i32 %20, ptr %21, align 4
  %22 = icmp eq i32 %2, 1
  %23 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %24 = getelementptr inbounds nuw i8, ptr %9, i64 8
  br label %25

25:                                               ; preds = %15, %67
  %26 = phi i64 [ 0, %15 ], [ %70, %67 ]
  %27 = phi ptr [ null, %15 ], [ %61, %67 ]
  %28 = phi ptr [ @ansor_deploy_codes, %15 ], [ %69, %67 ]
  br i1 %22, label %29, label %32

29:                                               ; preds = %25
  %30 = load i64, ptr %23, align 8
  %31 = icmp eq i64 %30, %26
  br i1 %31, label %32, label %60

32:                                               ; preds = %29, %25
  store i64 0, ptr %24, align 8
  %33 = load i8, ptr %28, align 1
  %34 = icmp eq i8 %33, 32
  br i1 %34, label %46, label %35

35:                                               ; preds = %32, %35
  %36 = phi i64 [ %42, %35 ], [ 0, %32 ]
  %37 = phi i8 [ %44, %35 ], [ %33, %32 ]
  %38 = phi ptr [ %43, %35 ], [ %28, %32 ]
  %39 = mul nsw i64 %36, 10
  %40 = zext i8 %37 to i64
  %41 = add i64 %39, -48
  %42 = add i64 %41, %40
  store i64 %42, ptr %24, align 8
  %43 = getelementptr inbounds nuw i8, ptr %38, i64 1
  %44 = load i8, ptr %43, align 1
  %45 = icmp eq i8 %44, 32
  br i1 %45, label %46, label %35

46:                                               ; preds = %35, %32
  %47 = phi ptr [ %28, %32 ], [ %43, %35 ]
  %48 = getelementptr inbounds nuw i8, ptr %47, i64 1
  %49 = call fastcc i32 @lacks(ptr noundef %48, ptr noundef %8, ptr noundef null, i64 noundef 0)
  %50 = icmp eq i32 %49, 0
  br i1 %50, label %51, label %60

51:                                               ; preds = %46
  br i1 %16, label %71, label %52

52:                                               ; preds = %51
  %53 = load i32, ptr @__tvm_ffi_choose_code.set, align 4
  %54 = add nsw i32 %53, 1
  store i32 %54, ptr @__tvm_ffi_choose_code.set, align 4
  %55 = icmp eq i32 %53, 0
  %56 = icmp ne ptr @__tvm_ffi_use_threads, null
  %57 = and i1 %56, %55
  br i1 %57, label %58, label %71

58:                                               ; preds = %52
  %59 = call i32 @__tvm_ffi_use_threads(ptr noundef %0, ptr noundef nonnull %9, i32 noundef 1, ptr noundef %3)
  br label %71

60:                                               ; preds = %46, %29
  %61 = phi ptr [ %27, %29 ], [ %48, %46 ]
  br label %62

62:                                               ; preds = %65, %60
  %63 = phi ptr [ %28, %60 ], [ %66, %65 ]
  %64 = load i8, ptr %63, align 1
  switch i8 %64, label %65 [
    i8 0, label %67
    i8 59, label %67
  ]

65:                                               ; preds = %62
  %66 = getelementptr inbounds nuw i8, ptr %63, i64 1
  br label %62

67:                                               ; preds = %62, %62
  %68 = icmp eq i8 %64, 0
  %69 = getelementptr inbounds nuw i8, ptr %63, i64 1
  %70 = add nuw nsw i64 %26, 1
  br i1 %68, label %73, label %25

71:                                               ; preds = %51, %52, %58
  store i32 1, ptr %3, align 8
  %72 = getelementptr inbounds nuw i8, ptr %3, i64 8
  store i64 %26, ptr %72, align 8
  br label %87

73:                                               ; preds = %67
  %74 = icmp eq ptr %61, null
  br i1 %74, label %86, label %75

75:                                               ; preds = %73
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 1 dereferenceable(400) %5, i8 0, i64 400, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 1 dereferenceable(49) %6, i8 0, i64 49, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %7)
  %76 = call fastcc i32 @lacks(ptr noundef nonnull %61, ptr noundef nonnull readonly %8, ptr noundef nonnull %5, i64 noundef 400)
  br label %77

77:                                               ; preds = %77, %75
  %78 = phi ptr [ %6, %75 ], [ %81, %77 ]
  %79 = load i8, ptr %78, align 1
  %80 = icmp eq i8 %79, 32
  %81 = getelementptr inbounds nuw i8, ptr %78, i64 1
  br i1 %80, label %77, label %82

82:                                               ; preds = %77
  %83 = icmp eq i8 %79, 0
  %84 = select i1 %83, ptr @.str.4, ptr @.str.3
  %85 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %7, i64 noundef 700, ptr noundef nonnull @.str.5, ptr noundef nonnull %5, ptr noundef nonnull %78, ptr noundef nonnull %84, ptr noundef nonnull @.str.6, ptr noundef nonnull @.str.7)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str, ptr noundef nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %87

86:                                               ; preds = %73
  tail call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str, ptr noundef nonnull @.str.1)
  br label %87

87:                                               ; preds = %71, %86, %82
  %88 = phi i32 [ -1, %82 ], [ -1, %86 ], [ 0, %71 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %9)
  call void @llvm.lifetime.end.p0(ptr nonnull %8)
  ret i32 %88
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg)

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

define internal fastcc i32 @lacks(ptr noundef nonnull %0, ptr noundef nonnull readonly captures(none) %1, ptr noundef writeonly captures(none) %2, i64 noundef range(i64 0, 401) %3) {
  br label %5

5:                                                ; preds = %74, %4
  %6 = phi i64 [ 0, %4 ], [ %76, %74 ]
  %7 = phi i32 [ 0, %4 ], [ %77, %74 ]
  %8 = phi ptr [ %0, %4 ], [ %80, %74 ]
  %9 = load i8, ptr %8, align 1
  switch i8 %9, label %11 [
    i8 0, label %10
    i8 59, label %10
  ]

10:                                               ; preds = %5, %5
  ret i32 %7

11:                                               ; preds = %5, %14
  %12 = phi i8 [ %17, %14 ], [ %9, %5 ]
  %13 = phi i64 [ %15, %14 ], [ 0, %5 ]
  switch i8 %12, label %14 [
    i8 0, label %18
    i8 32, label %18
    i8 59, label %18
  ]

14:                                               ; preds = %11
  %15 = add i64 %13, 1
  %16 = getelementptr inbounds nuw i8, ptr %8, i64 %15
  %17 = load i8, ptr %16, align 1
  br label %11

18:                                               ; preds = %11, %11, %11
  %19 = getelementptr inbounds nuw i8, ptr %8, i64 %13
  %20 = tail call i64 @llvm.umin.i64(i64 %13, i64 16)
  %21 = icmp eq i64 %13, 0
  %22 = icmp eq i64 %13, 16
  br label %23

23:                                               ; preds = %44, %18
  %24 = phi i64 [ 0, %18 ], [ %45, %44 ]
  %25 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %24
  br i1 %21, label %40, label %26

26:                                               ; preds = %23, %33
  %27 = phi i64 [ %34, %33 ], [ 0, %23 ]
  %28 = getelementptr inbounds nuw i8, ptr %25, i64 %27
  %29 = load i8, ptr %28, align 1
  %30 = getelementptr inbounds nuw i8, ptr %8, i64 %27
  %31 = load i8, ptr %30, align 1
  %32 = icmp eq i8 %29, %31
  br i1 %32, label %33, label %36

33:                                               ; preds = %26
  %34 = add nuw nsw i64 %27, 1
  %35 = icmp eq i64 %34, %20
  br i1 %35, label %36, label %26

36:                                               ; preds = %33, %26
  %37 = phi i64 [ %27, %26 ], [ %20, %33 ]
  %38 = icmp eq i64 %37, %13
  br i1 %38, label %39, label %44

39:                                               ; preds = %36
  br i1 %22, label %47, label %40

40:                                               ; preds = %39, %23
  %41 = getelementptr inbounds nuw i8, ptr %25, i64 %13
  %42 = load i8, ptr %41, align 1
  %43 = icmp eq i8 %42, 0
  br i1 %43, label %47, label %44

44:                                               ; preds = %40, %36
  %45 = add nuw nsw i64 %24, 1
  %46 = icmp eq i64 %45, 13
  br i1 %46, label %74, label %23

47:                                               ; preds = %39, %40
  %48 = getelementptr inbounds nuw i8, ptr %25, i64 16
  %49 = load i32, ptr %48, align 4
  %50 = zext i32 %49 to i64
  %51 = getelementptr inbounds nuw i32, ptr %1, i64 %50
  %52 = load i32, ptr %51, align 4
  %53 = getelementptr inbounds nuw i8, ptr %25, i64 20
  %54 = load i32, ptr %53, align 4
  %55 = shl nuw i32 1, %54
  %56 = and i32 %55, %52
  %57 = icmp eq i32 %56, 0
  br i1 %57, label %58, label %74

58:                                               ; preds = %47
  %59 = icmp ult i64 %6, %3
  br i1 %59, label %60, label %70

60:                                               ; preds = %58
  %61 = getelementptr inbounds nuw i8, ptr %2, i64 %6
  %62 = sub nuw nsw i64 %3, %6
  %63 = icmp eq i32 %7, 0
  %64 = select i1 %63, ptr @.str.4, ptr @.str.3
  %65 = trunc i64 %13 to i32
  %66 = tail call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef %61, i64 noundef %62, ptr noundef nonnull @.str.2, ptr noundef nonnull %64, i32 noundef %65, ptr noundef nonnull %8)
  %67 = sext i32 %66 to i64
  %68 = add nsw i64 %6, %67
  %69 = load i8, ptr %19, align 1
  br label %70

70:                                               ; preds = %60, %58
  %71 = phi i8 [ %69, %60 ], [ %12, %58 ]
  %72 = phi i64 [ %68, %60 ], [ %6, %58 ]
  %73 = add i32 %7, 1
  br label %74

74:                                               ; preds = %44, %47, %70
  %75 = phi i8 [ %71, %70 ], [ %12, %47 ], [ %12, %44 ]
  %76 = phi i64 [ %72, %70 ], [ %6, %47 ], [ %6, %44 ]
  %77 = phi i32 [ %73, %70 ], [ %7, %47 ], [ %7, %44 ]
  %78 = icmp eq i8 %75, 32
  %79 = zext i1 %78 to i64
  %80 = getelementptr i8, ptr %19, i64 %79
  br label %5
}

declare extern_weak i32 @__tvm_ffi_use_threads(ptr noundef, ptr noundef, i32 noundef, ptr noundef)

declare void @llvm.lifetime.end.p0(ptr captures(none))

declare void @TVMFFIErrorSetRaisedFromCStr(ptr noundef, ptr noundef)

declare i64 @getauxval(i64 noundef)

declare noundef i32 @snprintf(ptr noalias noundef writeonly captures(none), i64 noundef, ptr noundef readonly captures(none), ...)

declare i64 @llvm.umin.i64(i64, i64)
