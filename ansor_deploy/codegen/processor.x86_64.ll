; Made by docs/make_llvm.py of processor.c, ef0b2b445627f466d004756a7ff4b1fb88c0cec72205302f56c4a0893e08134c
%struct.any = type { i32, i32, i64 }
%struct.feature = type { [16 x i8], i32, i32 }

@ansor_deploy_codes = external hidden constant [0 x i8], align 1
@__const.__tvm_ffi_choose_code.cores = private constant %struct.any { i32 1, i32 0, i64 0 }, align 8
@__tvm_ffi_choose_code.set = internal global i32 0, align 4
@.str = private constant [13 x i8] c"RuntimeError\00", align 1
@.str.1 = private constant [30 x i8] c"it has no code of that number\00", align 1
@.str.2 = private constant [9 x i8] c"amx-tile\00", align 1
@.str.3 = private constant [4 x i8] c"amx\00", align 1
@.str.4 = private constant [7 x i8] c"avx512\00", align 1
@.str.5 = private constant [4 x i8] c"avx\00", align 1
@.str.7 = private constant [4 x i8] c"xop\00", align 1
@features = internal constant [36 x %struct.feature] [%struct.feature { [16 x i8] c"sse3\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 0 }, %struct.feature { [16 x i8] c"ssse3\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 9 }, %struct.feature { [16 x i8] c"fma\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 12 }, %struct.feature { [16 x i8] c"sse4.1\00\00\00\00\00\00\00\00\00\00", i32 0, i32 19 }, %struct.feature { [16 x i8] c"sse4.2\00\00\00\00\00\00\00\00\00\00", i32 0, i32 20 }, %struct.feature { [16 x i8] c"movbe\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 22 }, %struct.feature { [16 x i8] c"popcnt\00\00\00\00\00\00\00\00\00\00", i32 0, i32 23 }, %struct.feature { [16 x i8] c"avx\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 28 }, %struct.feature { [16 x i8] c"f16c\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 29 }, %struct.feature { [16 x i8] c"lzcnt\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 5 }, %struct.feature { [16 x i8] c"sse4a\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 6 }, %struct.feature { [16 x i8] c"xop\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 11 }, %struct.feature { [16 x i8] c"fma4\00\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 16 }, %struct.feature { [16 x i8] c"tbm\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 21 }, %struct.feature { [16 x i8] c"bmi\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 3 }, %struct.feature { [16 x i8] c"avx2\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 5 }, %struct.feature { [16 x i8] c"bmi2\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 8 }, %struct.feature { [16 x i8] c"avx512f\00\00\00\00\00\00\00\00\00", i32 1, i32 16 }, %struct.feature { [16 x i8] c"avx512dq\00\00\00\00\00\00\00\00", i32 1, i32 17 }, %struct.feature { [16 x i8] c"avx512ifma\00\00\00\00\00\00", i32 1, i32 21 }, %struct.feature { [16 x i8] c"avx512cd\00\00\00\00\00\00\00\00", i32 1, i32 28 }, %struct.feature { [16 x i8] c"avx512bw\00\00\00\00\00\00\00\00", i32 1, i32 30 }, %struct.feature { [16 x i8] c"avx512vl\00\00\00\00\00\00\00\00", i32 1, i32 31 }, %struct.feature { [16 x i8] c"avx512vbmi\00\00\00\00\00\00", i32 2, i32 1 }, %struct.feature { [16 x i8] c"avx512vbmi2\00\00\00\00\00", i32 2, i32 6 }, %struct.feature { [16 x i8] c"gfni\00\00\00\00\00\00\00\00\00\00\00\00", i32 2, i32 8 }, %struct.feature { [16 x i8] c"avx512vnni\00\00\00\00\00\00", i32 2, i32 11 }, %struct.feature { [16 x i8] c"avx512bitalg\00\00\00\00", i32 2, i32 12 }, %struct.feature { [16 x i8] c"avx512vpopcntdq\00", i32 2, i32 14 }, %struct.feature { [16 x i8] c"amx-bf16\00\00\00\00\00\00\00\00", i32 3, i32 22 }, %struct.feature { [16 x i8] c"avx512fp16\00\00\00\00\00\00", i32 3, i32 23 }, %struct.feature { [16 x i8] c"amx-tile\00\00\00\00\00\00\00\00", i32 3, i32 24 }, %struct.feature { [16 x i8] c"amx-int8\00\00\00\00\00\00\00\00", i32 3, i32 25 }, %struct.feature { [16 x i8] c"avxvnni\00\00\00\00\00\00\00\00\00", i32 4, i32 4 }, %struct.feature { [16 x i8] c"avx512bf16\00\00\00\00\00\00", i32 4, i32 5 }, %struct.feature { [16 x i8] c"avxifma\00\00\00\00\00\00\00\00\00", i32 4, i32 23 }], align 16
@.str.8 = private constant [7 x i8] c"%s%.*s\00", align 1
@.str.9 = private constant [3 x i8] c", \00", align 1
@.str.10 = private constant [1 x i8] zeroinitializer, align 1
@.str.11 = private constant [128 x i8] c"it is built for a processor with %s, which this one (%s%s%s) lacks; build it with %s, or for both in one file with --target A,B\00", align 1
@levels = internal constant [4 x [3 x ptr]] [[3 x ptr] [ptr @.str.12, ptr @.str.13, ptr @.str.14], [3 x ptr] [ptr @.str.15, ptr @.str.16, ptr @.str.17], [3 x ptr] [ptr @.str.18, ptr @.str.19, ptr @.str.20], [3 x ptr] [ptr @.str.21, ptr @.str.10, ptr @.str.22]], align 16
@.str.12 = private constant [10 x i8] c"x86-64-v4\00", align 1
@.str.13 = private constant [44 x i8] c"avx512f avx512bw avx512cd avx512dq avx512vl\00", align 1
@.str.14 = private constant [26 x i8] c"--target intel-cpu-avx512\00", align 1
@.str.15 = private constant [10 x i8] c"x86-64-v3\00", align 1
@.str.16 = private constant [39 x i8] c"avx avx2 bmi bmi2 f16c fma lzcnt movbe\00", align 1
@.str.17 = private constant [24 x i8] c"--target intel-cpu-avx2\00", align 1
@.str.18 = private constant [10 x i8] c"x86-64-v2\00", align 1
@.str.19 = private constant [32 x i8] c"sse3 ssse3 sse4.1 sse4.2 popcnt\00", align 1
@.str.20 = private constant [30 x i8] c"a target of cpu = \22x86-64-v2\22\00", align 1
@.str.21 = private constant [7 x i8] c"x86-64\00", align 1
@.str.22 = private constant [27 x i8] c"a target of cpu = \22x86-64\22\00", align 1

define range(i32 -1, 1) i32 @__tvm_ffi_choose_code(ptr noundef %0, ptr noundef readonly captures(none) %1, i32 noundef %2, ptr noundef %3) {
  %5 = alloca [400 x i8], align 16
  %6 = alloca [49 x i8], align 16
  %7 = alloca [700 x i8], align 16
  %8 = alloca [6 x i32], align 16
  %9 = alloca %struct.any, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %8)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(24) %8, i8 0, i64 24, i1 false)
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
  %17 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 0, i32 0)
  %18 = extractvalue { i32, i32, i32, i32 } %17, 0
  %19 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 1, i32 0)
  %20 = extractvalue { i32, i32, i32, i32 } %19, 2
  store i32 %20, ptr %8, align 16
  %21 = icmp ugt i32 %18, 6
  br i1 %21, label %22, label %36

22:                                               ; preds = %15
  %23 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 7, i32 0)
  %24 = extractvalue { i32, i32, i32, i32 } %23, 0
  %25 = extractvalue { i32, i32, i32, i32 } %23, 1
  %26 = extractvalue { i32, i32, i32, i32 } %23, 2
  %27 = extractvalue { i32, i32, i32, i32 } %23, 3
  %28 = getelementptr inbounds nuw i8, ptr %8, i64 4
  store i32 %25, ptr %28, align 4
  %29 = getelementptr inbounds nuw i8, ptr %8, i64 8
  store i32 %26, ptr %29, align 8
  %30 = getelementptr inbounds nuw i8, ptr %8, i64 12
  store i32 %27, ptr %30, align 4
  %31 = icmp eq i32 %24, 0
  br i1 %31, label %36, label %32

32:                                               ; preds = %22
  %33 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 7, i32 1)
  %34 = extractvalue { i32, i32, i32, i32 } %33, 0
  %35 = getelementptr inbounds nuw i8, ptr %8, i64 16
  store i32 %34, ptr %35, align 16
  br label %36

36:                                               ; preds = %32, %22, %15
  %37 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 -2147483648, i32 0)
  %38 = extractvalue { i32, i32, i32, i32 } %37, 0
  %39 = icmp ugt i32 %38, -2147483648
  br i1 %39, label %40, label %44

40:                                               ; preds = %36
  %41 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 -2147483647, i32 0)
  %42 = extractvalue { i32, i32, i32, i32 } %41, 2
  %43 = getelementptr inbounds nuw i8, ptr %8, i64 20
  store i32 %42, ptr %43, align 4
  br label %44

44:                                               ; preds = %40, %36
  %45 = and i32 %20, 134217728
  %46 = icmp eq i32 %45, 0
  br i1 %46, label %74, label %47

47:                                               ; preds = %44
  %48 = tail call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)
  %49 = extractvalue { i32, i32 } %48, 0
  %50 = and i32 %49, 393216
  %51 = icmp eq i32 %50, 393216
  br i1 %51, label %52, label %74

52:                                               ; preds = %47
  %53 = load i8, ptr @ansor_deploy_codes, align 1
  %54 = icmp eq i8 %53, 0
  br i1 %54, label %74, label %55

55:                                               ; preds = %52, %67
  %56 = phi ptr [ %68, %67 ], [ @ansor_deploy_codes, %52 ]
  br label %60

57:                                               ; preds = %60
  %58 = add nuw nsw i64 %61, 1
  %59 = icmp eq i64 %58, 8
  br i1 %59, label %71, label %60

60:                                               ; preds = %57, %55
  %61 = phi i64 [ 0, %55 ], [ %58, %57 ]
  %62 = getelementptr inbounds nuw i8, ptr @.str.2, i64 %61
  %63 = load i8, ptr %62, align 1
  %64 = getelementptr inbounds nuw i8, ptr %56, i64 %61
  %65 = load i8, ptr %64, align 1
  %66 = icmp eq i8 %63, %65
  br i1 %66, label %57, label %67

67:                                               ; preds = %60
  %68 = getelementptr inbounds nuw i8, ptr %56, i64 1
  %69 = load i8, ptr %68, align 1
  %70 = icmp eq i8 %69, 0
  br i1 %70, label %74, label %55

71:                                               ; preds = %57
  %72 = tail call i64 asm sideeffect "syscall", "={ax},0,{di},{si},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"(i64 158, i64 4131, i64 18)
  %73 = icmp eq i64 %72, 0
  br i1 %73, label %104, label %74

74:                                               ; preds = %67, %71, %52, %47, %44
  %75 = phi i32 [ %49, %47 ], [ %49, %71 ], [ 0, %44 ], [ %49, %52 ], [ %49, %67 ]
  br label %76

76:                                               ; preds = %101, %74
  %77 = phi i64 [ 0, %74 ], [ %102, %101 ]
  %78 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %77
  br label %84

79:                                               ; preds = %84
  %80 = add nuw nsw i64 %86, 1
  %81 = getelementptr inbounds nuw i8, ptr @.str.3, i64 %80
  %82 = load i8, ptr %81, align 1
  %83 = icmp eq i64 %80, 3
  br i1 %83, label %90, label %84

84:                                               ; preds = %79, %76
  %85 = phi i8 [ 97, %76 ], [ %82, %79 ]
  %86 = phi i64 [ 0, %76 ], [ %80, %79 ]
  %87 = getelementptr inbounds nuw i8, ptr %78, i64 %86
  %88 = load i8, ptr %87, align 1
  %89 = icmp eq i8 %85, %88
  br i1 %89, label %79, label %101

90:                                               ; preds = %79
  %91 = getelementptr inbounds nuw i8, ptr %78, i64 20
  %92 = load i32, ptr %91, align 4
  %93 = shl nuw i32 1, %92
  %94 = xor i32 %93, -1
  %95 = getelementptr inbounds nuw i8, ptr %78, i64 16
  %96 = load i32, ptr %95, align 8
  %97 = zext i32 %96 to i64
  %98 = getelementptr inbounds nuw i32, ptr %8, i64 %97
  %99 = load i32, ptr %98, align 4
  %100 = and i32 %99, %94
  store i32 %100, ptr %98, align 4
  br label %101

101:                                              ; preds = %84, %90
  %102 = add nuw nsw i64 %77, 1
  %103 = icmp eq i64 %102, 36
  br i1 %103, label %104, label %76

104:                                              ; preds = %101, %71
  %105 = phi i32 [ %49, %71 ], [ %75, %101 ]
  %106 = and i32 %105, 230
  %107 = icmp eq i32 %106, 230
  br i1 %107, label %136, label %108

108:                                              ; preds = %104, %133
  %109 = phi i64 [ %134, %133 ], [ 0, %104 ]
  %110 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %109
  br label %116

111:                                              ; preds = %116
  %112 = add nuw nsw i64 %118, 1
  %113 = getelementptr inbounds nuw i8, ptr @.str.4, i64 %112
  %114 = load i8, ptr %113, align 1
  %115 = icmp eq i64 %112, 6
  br i1 %115, label %122, label %116

116:                                              ; preds = %111, %108
  %117 = phi i8 [ 97, %108 ], [ %114, %111 ]
  %118 = phi i64 [ 0, %108 ], [ %112, %111 ]
  %119 = getelementptr inbounds nuw i8, ptr %110, i64 %118
  %120 = load i8, ptr %119, align 1
  %121 = icmp eq i8 %117, %120
  br i1 %121, label %111, label %133

122:                                              ; preds = %111
  %123 = getelementptr inbounds nuw i8, ptr %110, i64 20
  %124 = load i32, ptr %123, align 4
  %125 = shl nuw i32 1, %124
  %126 = xor i32 %125, -1
  %127 = getelementptr inbounds nuw i8, ptr %110, i64 16
  %128 = load i32, ptr %127, align 8
  %129 = zext i32 %128 to i64
  %130 = getelementptr inbounds nuw i32, ptr %8, i64 %129
  %131 = load i32, ptr %130, align 4
  %132 = and i32 %131, %126
  store i32 %132, ptr %130, align 4
  br label %133

133:                                              ; preds = %116, %122
  %134 = add nuw nsw i64 %109, 1
  %135 = icmp eq i64 %134, 36
  br i1 %135, label %136, label %108

136:                                              ; preds = %133, %104
  %137 = and i32 %105, 6
  %138 = icmp eq i32 %137, 6
  br i1 %138, label %215, label %139

139:                                              ; preds = %136, %164
  %140 = phi i64 [ %165, %164 ], [ 0, %136 ]
  %141 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %140
  br label %147

142:                                              ; preds = %147
  %143 = add nuw nsw i64 %149, 1
  %144 = getelementptr inbounds nuw i8, ptr @.str.5, i64 %143
  %145 = load i8, ptr %144, align 1
  %146 = icmp eq i64 %143, 3
  br i1 %146, label %153, label %147

147:                                              ; preds = %142, %139
  %148 = phi i8 [ 97, %139 ], [ %145, %142 ]
  %149 = phi i64 [ 0, %139 ], [ %143, %142 ]
  %150 = getelementptr inbounds nuw i8, ptr %141, i64 %149
  %151 = load i8, ptr %150, align 1
  %152 = icmp eq i8 %148, %151
  br i1 %152, label %142, label %164

153:                                              ; preds = %142
  %154 = getelementptr inbounds nuw i8, ptr %141, i64 20
  %155 = load i32, ptr %154, align 4
  %156 = shl nuw i32 1, %155
  %157 = xor i32 %156, -1
  %158 = getelementptr inbounds nuw i8, ptr %141, i64 16
  %159 = load i32, ptr %158, align 8
  %160 = zext i32 %159 to i64
  %161 = getelementptr inbounds nuw i32, ptr %8, i64 %160
  %162 = load i32, ptr %161, align 4
  %163 = and i32 %162, %157
  store i32 %163, ptr %161, align 4
  br label %164

164:                                              ; preds = %147, %153
  %165 = add nuw nsw i64 %140, 1
  %166 = icmp eq i64 %165, 36
  br i1 %166, label %167, label %139

167:                                              ; preds = %164, %184
  %168 = phi i64 [ %185, %184 ], [ 0, %164 ]
  %169 = shl nuw i64 1, %168
  %170 = and i64 %169, 4356
  %171 = icmp eq i64 %170, 0
  br i1 %171, label %184, label %172

172:                                              ; preds = %167
  %173 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %168
  %174 = getelementptr inbounds nuw i8, ptr %173, i64 20
  %175 = load i32, ptr %174, align 4
  %176 = shl nuw i32 1, %175
  %177 = xor i32 %176, -1
  %178 = getelementptr inbounds nuw i8, ptr %173, i64 16
  %179 = load i32, ptr %178, align 8
  %180 = zext i32 %179 to i64
  %181 = getelementptr inbounds nuw i32, ptr %8, i64 %180
  %182 = load i32, ptr %181, align 4
  %183 = and i32 %182, %177
  store i32 %183, ptr %181, align 4
  br label %184

184:                                              ; preds = %172, %167
  %185 = add nuw nsw i64 %168, 1
  %186 = icmp eq i64 %185, 36
  br i1 %186, label %187, label %167

187:                                              ; preds = %184, %212
  %188 = phi i64 [ %213, %212 ], [ 0, %184 ]
  %189 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %188
  br label %195

190:                                              ; preds = %195
  %191 = add nuw nsw i64 %197, 1
  %192 = getelementptr inbounds nuw i8, ptr @.str.7, i64 %191
  %193 = load i8, ptr %192, align 1
  %194 = icmp eq i64 %191, 3
  br i1 %194, label %201, label %195

195:                                              ; preds = %190, %187
  %196 = phi i8 [ 120, %187 ], [ %193, %190 ]
  %197 = phi i64 [ 0, %187 ], [ %191, %190 ]
  %198 = getelementptr inbounds nuw i8, ptr %189, i64 %197
  %199 = load i8, ptr %198, align 1
  %200 = icmp eq i8 %196, %199
  br i1 %200, label %190, label %212

201:                                              ; preds = %190
  %202 = getelementptr inbounds nuw i8, ptr %189, i64 20
  %203 = load i32, ptr %202, align 4
  %204 = shl nuw i32 1, %203
  %205 = xor i32 %204, -1
  %206 = getelementptr inbounds nuw i8, ptr %189, i64 16
  %207 = load i32, ptr %206, align 8
  %208 = zext i32 %207 to i64
  %209 = getelementptr inbounds nuw i32, ptr %8, i64 %208
  %210 = load i32, ptr %209, align 4
  %211 = and i32 %210, %205
  store i32 %211, ptr %209, align 4
  br label %212

212:                                              ; preds = %195, %201
  %213 = add nuw nsw i64 %188, 1
  %214 = icmp eq i64 %213, 36
  br i1 %214, label %215, label %187

215:                                              ; preds = %212, %136
  %216 = icmp eq i32 %2, 1
  %217 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %218 = getelementptr inbounds nuw i8, ptr %9, i64 8
  br label %219

219:                                              ; preds = %215, %261
  %220 = phi i64 [ 0, %215 ], [ %264, %261 ]
  %221 = phi ptr [ null, %215 ], [ %255, %261 ]
  %222 = phi ptr [ @ansor_deploy_codes, %215 ], [ %263, %261 ]
  br i1 %216, label %223, label %226

223:                                              ; preds = %219
  %224 = load i64, ptr %217, align 8
  %225 = icmp eq i64 %224, %220
  br i1 %225, label %226, label %254

226:                                              ; preds = %223, %219
  store i64 0, ptr %218, align 8
  %227 = load i8, ptr %222, align 1
  %228 = icmp eq i8 %227, 32
  br i1 %228, label %240, label %229

229:                                              ; preds = %226, %229
  %230 = phi i64 [ %236, %229 ], [ 0, %226 ]
  %231 = phi i8 [ %238, %229 ], [ %227, %226 ]
  %232 = phi ptr [ %237, %229 ], [ %222, %226 ]
  %233 = mul nsw i64 %230, 10
  %234 = sext i8 %231 to i64
  %235 = add i64 %233, -48
  %236 = add i64 %235, %234
  store i64 %236, ptr %218, align 8
  %237 = getelementptr inbounds nuw i8, ptr %232, i64 1
  %238 = load i8, ptr %237, align 1
  %239 = icmp eq i8 %238, 32
  br i1 %239, label %240, label %229

240:                                              ; preds = %229, %226
  %241 = phi ptr [ %222, %226 ], [ %237, %229 ]
  %242 = getelementptr inbounds nuw i8, ptr %241, i64 1
  %243 = call fastcc i32 @lacks(ptr noundef nonnull %242, ptr noundef %8, ptr noundef null, i64 noundef 0)
  %244 = icmp eq i32 %243, 0
  br i1 %244, label %245, label %254

245:                                              ; preds = %240
  br i1 %16, label %265, label %246

246:                                              ; preds = %245
  %247 = load i32, ptr @__tvm_ffi_choose_code.set, align 4
  %248 = add nsw i32 %247, 1
  store i32 %248, ptr @__tvm_ffi_choose_code.set, align 4
  %249 = icmp eq i32 %247, 0
  %250 = icmp ne ptr @__tvm_ffi_use_threads, null
  %251 = and i1 %250, %249
  br i1 %251, label %252, label %265

252:                                              ; preds = %246
  %253 = call i32 @__tvm_ffi_use_threads(ptr noundef %0, ptr noundef nonnull %9, i32 noundef 1, ptr noundef %3)
  br label %265

254:                                              ; preds = %240, %223
  %255 = phi ptr [ %221, %223 ], [ %242, %240 ]
  br label %256

256:                                              ; preds = %259, %254
  %257 = phi ptr [ %222, %254 ], [ %260, %259 ]
  %258 = load i8, ptr %257, align 1
  switch i8 %258, label %259 [
    i8 0, label %261
    i8 59, label %261
  ]

259:                                              ; preds = %256
  %260 = getelementptr inbounds nuw i8, ptr %257, i64 1
  br label %256

261:                                              ; preds = %256, %256
  %262 = icmp eq i8 %258, 0
  %263 = getelementptr inbounds nuw i8, ptr %257, i64 1
  %264 = add nuw nsw i64 %220, 1
  br i1 %262, label %267, label %219

265:                                              ; preds = %245, %246, %252
  store i32 1, ptr %3, align 8
  %266 = getelementptr inbounds nuw i8, ptr %3, i64 8
  store i64 %220, ptr %266, align 8
  br label %323

267:                                              ; preds = %261
  %268 = icmp eq ptr %255, null
  br i1 %268, label %322, label %269

269:                                              ; preds = %267
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(400) %5, i8 0, i64 400, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(49) %6, i8 0, i64 49, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %7)
  br label %270

270:                                              ; preds = %277, %269
  %271 = phi i64 [ 3, %269 ], [ %278, %277 ]
  %272 = getelementptr [3 x ptr], ptr @levels, i64 %271
  %273 = getelementptr i8, ptr %272, i64 -16
  %274 = load ptr, ptr %273, align 8
  %275 = call fastcc i32 @lacks(ptr noundef %274, ptr noundef nonnull readonly %8, ptr noundef null, i64 noundef 0)
  %276 = icmp eq i32 %275, 0
  br i1 %276, label %277, label %280

277:                                              ; preds = %270
  %278 = add nsw i64 %271, -1
  %279 = icmp eq i64 %278, 0
  br i1 %279, label %280, label %270

280:                                              ; preds = %277, %270
  %281 = phi i64 [ 0, %277 ], [ %271, %270 ]
  %282 = call fastcc i32 @lacks(ptr noundef nonnull %255, ptr noundef nonnull readonly %8, ptr noundef nonnull %5, i64 noundef 400)
  %283 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 -2147483648, i32 0)
  %284 = extractvalue { i32, i32, i32, i32 } %283, 0
  %285 = icmp ult i32 %284, -2147483644
  br i1 %285, label %308, label %286

286:                                              ; preds = %280, %286
  %287 = phi i64 [ %306, %286 ], [ 0, %280 ]
  %288 = trunc i64 %287 to i32
  %289 = add i32 %288, -2147483646
  %290 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 range(i32 0, -2147483643) %289, i32 0)
  %291 = extractvalue { i32, i32, i32, i32 } %290, 0
  %292 = extractvalue { i32, i32, i32, i32 } %290, 1
  %293 = extractvalue { i32, i32, i32, i32 } %290, 2
  %294 = extractvalue { i32, i32, i32, i32 } %290, 3
  %295 = zext i32 %292 to i64
  %296 = shl nuw i64 %295, 32
  %297 = zext i32 %291 to i64
  %298 = or disjoint i64 %296, %297
  %299 = zext i32 %294 to i64
  %300 = shl nuw i64 %299, 32
  %301 = zext i32 %293 to i64
  %302 = or disjoint i64 %300, %301
  %303 = shl nuw nsw i64 %287, 4
  %304 = getelementptr inbounds nuw i8, ptr %6, i64 %303
  store i64 %298, ptr %304, align 16
  %305 = getelementptr inbounds nuw i8, ptr %304, i64 8
  store i64 %302, ptr %305, align 8
  %306 = add nuw nsw i64 %287, 1
  %307 = icmp eq i64 %306, 3
  br i1 %307, label %308, label %286

308:                                              ; preds = %286, %280
  br label %309

309:                                              ; preds = %308, %309
  %310 = phi ptr [ %313, %309 ], [ %6, %308 ]
  %311 = load i8, ptr %310, align 1
  %312 = icmp eq i8 %311, 32
  %313 = getelementptr inbounds nuw i8, ptr %310, i64 1
  br i1 %312, label %309, label %314

314:                                              ; preds = %309
  %315 = getelementptr inbounds nuw [3 x ptr], ptr @levels, i64 %281
  %316 = icmp eq i8 %311, 0
  %317 = select i1 %316, ptr @.str.10, ptr @.str.9
  %318 = load ptr, ptr %315, align 8
  %319 = getelementptr inbounds nuw i8, ptr %315, i64 16
  %320 = load ptr, ptr %319, align 8
  %321 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %7, i64 noundef 700, ptr noundef nonnull @.str.11, ptr noundef nonnull %5, ptr noundef nonnull %310, ptr noundef nonnull %317, ptr noundef %318, ptr noundef %320)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str, ptr noundef nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %323

322:                                              ; preds = %267
  tail call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str, ptr noundef nonnull @.str.1)
  br label %323

323:                                              ; preds = %265, %322, %314
  %324 = phi i32 [ -1, %314 ], [ -1, %322 ], [ 0, %265 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %9)
  call void @llvm.lifetime.end.p0(ptr nonnull %8)
  ret i32 %324
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg)

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

define internal fastcc i32 @lacks(ptr noundef %0, ptr noundef nonnull readonly captures(none) %1, ptr noundef writeonly captures(none) %2, i64 noundef range(i64 0, 401) %3) {
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
  %46 = icmp eq i64 %45, 36
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
  %64 = select i1 %63, ptr @.str.10, ptr @.str.9
  %65 = trunc i64 %13 to i32
  %66 = tail call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef %61, i64 noundef %62, ptr noundef nonnull @.str.8, ptr noundef nonnull %64, i32 noundef %65, ptr noundef nonnull %8)
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

declare noundef i32 @snprintf(ptr noalias noundef writeonly captures(none), i64 noundef, ptr noundef readonly captures(none), ...)

declare i64 @llvm.umin.i64(i64, i64)
