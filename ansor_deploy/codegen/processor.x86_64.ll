; Made by docs/make_llvm.py of processor.c, 212aad2134e999979137174359ef75c16af43fd6519e30ae0bc63db099ab0366
%struct.any = type { i32, i32, i64 }
%struct.feature = type { [16 x i8], i32, i32 }

@ansor_deploy_codes = external hidden constant [0 x i8], align 1
@__const.__tvm_ffi_choose_code.cores = private constant %struct.any { i32 1, i32 0, i64 0 }, align 8
@__tvm_ffi_choose_code.set = internal global i32 0, align 4
@.str = private constant [13 x i8] c"RuntimeError\00", align 1
@.str.1 = private constant [30 x i8] c"it has no code of that number\00", align 1
@.str.2 = private constant [7 x i8] c"avx512\00", align 1
@.str.3 = private constant [4 x i8] c"avx\00", align 1
@.str.5 = private constant [4 x i8] c"xop\00", align 1
@features = internal constant [33 x %struct.feature] [%struct.feature { [16 x i8] c"sse3\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 0 }, %struct.feature { [16 x i8] c"ssse3\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 9 }, %struct.feature { [16 x i8] c"fma\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 12 }, %struct.feature { [16 x i8] c"sse4.1\00\00\00\00\00\00\00\00\00\00", i32 0, i32 19 }, %struct.feature { [16 x i8] c"sse4.2\00\00\00\00\00\00\00\00\00\00", i32 0, i32 20 }, %struct.feature { [16 x i8] c"movbe\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 22 }, %struct.feature { [16 x i8] c"popcnt\00\00\00\00\00\00\00\00\00\00", i32 0, i32 23 }, %struct.feature { [16 x i8] c"avx\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 28 }, %struct.feature { [16 x i8] c"f16c\00\00\00\00\00\00\00\00\00\00\00\00", i32 0, i32 29 }, %struct.feature { [16 x i8] c"lzcnt\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 5 }, %struct.feature { [16 x i8] c"sse4a\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 6 }, %struct.feature { [16 x i8] c"xop\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 11 }, %struct.feature { [16 x i8] c"fma4\00\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 16 }, %struct.feature { [16 x i8] c"tbm\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 5, i32 21 }, %struct.feature { [16 x i8] c"bmi\00\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 3 }, %struct.feature { [16 x i8] c"avx2\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 5 }, %struct.feature { [16 x i8] c"bmi2\00\00\00\00\00\00\00\00\00\00\00\00", i32 1, i32 8 }, %struct.feature { [16 x i8] c"avx512f\00\00\00\00\00\00\00\00\00", i32 1, i32 16 }, %struct.feature { [16 x i8] c"avx512dq\00\00\00\00\00\00\00\00", i32 1, i32 17 }, %struct.feature { [16 x i8] c"avx512ifma\00\00\00\00\00\00", i32 1, i32 21 }, %struct.feature { [16 x i8] c"avx512cd\00\00\00\00\00\00\00\00", i32 1, i32 28 }, %struct.feature { [16 x i8] c"avx512bw\00\00\00\00\00\00\00\00", i32 1, i32 30 }, %struct.feature { [16 x i8] c"avx512vl\00\00\00\00\00\00\00\00", i32 1, i32 31 }, %struct.feature { [16 x i8] c"avx512vbmi\00\00\00\00\00\00", i32 2, i32 1 }, %struct.feature { [16 x i8] c"avx512vbmi2\00\00\00\00\00", i32 2, i32 6 }, %struct.feature { [16 x i8] c"gfni\00\00\00\00\00\00\00\00\00\00\00\00", i32 2, i32 8 }, %struct.feature { [16 x i8] c"avx512vnni\00\00\00\00\00\00", i32 2, i32 11 }, %struct.feature { [16 x i8] c"avx512bitalg\00\00\00\00", i32 2, i32 12 }, %struct.feature { [16 x i8] c"avx512vpopcntdq\00", i32 2, i32 14 }, %struct.feature { [16 x i8] c"avx512fp16\00\00\00\00\00\00", i32 3, i32 23 }, %struct.feature { [16 x i8] c"avxvnni\00\00\00\00\00\00\00\00\00", i32 4, i32 4 }, %struct.feature { [16 x i8] c"avx512bf16\00\00\00\00\00\00", i32 4, i32 5 }, %struct.feature { [16 x i8] c"avxifma\00\00\00\00\00\00\00\00\00", i32 4, i32 23 }], align 16
@.str.6 = private constant [7 x i8] c"%s%.*s\00", align 1
@.str.7 = private constant [3 x i8] c", \00", align 1
@.str.8 = private constant [1 x i8] zeroinitializer, align 1
@.str.9 = private constant [128 x i8] c"it is built for a processor with %s, which this one (%s%s%s) lacks; build it with %s, or for both in one file with --target A,B\00", align 1
@levels = internal constant [4 x [3 x ptr]] [[3 x ptr] [ptr @.str.10, ptr @.str.11, ptr @.str.12], [3 x ptr] [ptr @.str.13, ptr @.str.14, ptr @.str.15], [3 x ptr] [ptr @.str.16, ptr @.str.17, ptr @.str.18], [3 x ptr] [ptr @.str.19, ptr @.str.8, ptr @.str.20]], align 16
@.str.10 = private constant [10 x i8] c"x86-64-v4\00", align 1
@.str.11 = private constant [44 x i8] c"avx512f avx512bw avx512cd avx512dq avx512vl\00", align 1
@.str.12 = private constant [26 x i8] c"--target intel-cpu-avx512\00", align 1
@.str.13 = private constant [10 x i8] c"x86-64-v3\00", align 1
@.str.14 = private constant [39 x i8] c"avx avx2 bmi bmi2 f16c fma lzcnt movbe\00", align 1
@.str.15 = private constant [24 x i8] c"--target intel-cpu-avx2\00", align 1
@.str.16 = private constant [10 x i8] c"x86-64-v2\00", align 1
@.str.17 = private constant [32 x i8] c"sse3 ssse3 sse4.1 sse4.2 popcnt\00", align 1
@.str.18 = private constant [30 x i8] c"a target of cpu = \22x86-64-v2\22\00", align 1
@.str.19 = private constant [7 x i8] c"x86-64\00", align 1
@.str.20 = private constant [27 x i8] c"a target of cpu = \22x86-64\22\00", align 1

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
  br i1 %46, label %52, label %47

47:                                               ; preds = %44
  %48 = tail call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)
  %49 = extractvalue { i32, i32 } %48, 0
  %50 = and i32 %49, 230
  %51 = icmp eq i32 %50, 230
  br i1 %51, label %82, label %52

52:                                               ; preds = %47, %44
  %53 = phi i32 [ %49, %47 ], [ 0, %44 ]
  br label %54

54:                                               ; preds = %79, %52
  %55 = phi i64 [ 0, %52 ], [ %80, %79 ]
  %56 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %55
  br label %62

57:                                               ; preds = %62
  %58 = add nuw nsw i64 %64, 1
  %59 = getelementptr inbounds nuw i8, ptr @.str.2, i64 %58
  %60 = load i8, ptr %59, align 1
  %61 = icmp eq i64 %58, 6
  br i1 %61, label %68, label %62

62:                                               ; preds = %57, %54
  %63 = phi i8 [ 97, %54 ], [ %60, %57 ]
  %64 = phi i64 [ 0, %54 ], [ %58, %57 ]
  %65 = getelementptr inbounds nuw i8, ptr %56, i64 %64
  %66 = load i8, ptr %65, align 1
  %67 = icmp eq i8 %63, %66
  br i1 %67, label %57, label %79

68:                                               ; preds = %57
  %69 = getelementptr inbounds nuw i8, ptr %56, i64 20
  %70 = load i32, ptr %69, align 4
  %71 = shl nuw i32 1, %70
  %72 = xor i32 %71, -1
  %73 = getelementptr inbounds nuw i8, ptr %56, i64 16
  %74 = load i32, ptr %73, align 8
  %75 = zext i32 %74 to i64
  %76 = getelementptr inbounds nuw i32, ptr %8, i64 %75
  %77 = load i32, ptr %76, align 4
  %78 = and i32 %77, %72
  store i32 %78, ptr %76, align 4
  br label %79

79:                                               ; preds = %62, %68
  %80 = add nuw nsw i64 %55, 1
  %81 = icmp eq i64 %80, 33
  br i1 %81, label %82, label %54

82:                                               ; preds = %79, %47
  %83 = phi i32 [ %49, %47 ], [ %53, %79 ]
  %84 = and i32 %83, 6
  %85 = icmp eq i32 %84, 6
  br i1 %85, label %162, label %86

86:                                               ; preds = %82, %111
  %87 = phi i64 [ %112, %111 ], [ 0, %82 ]
  %88 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %87
  br label %94

89:                                               ; preds = %94
  %90 = add nuw nsw i64 %96, 1
  %91 = getelementptr inbounds nuw i8, ptr @.str.3, i64 %90
  %92 = load i8, ptr %91, align 1
  %93 = icmp eq i64 %90, 3
  br i1 %93, label %100, label %94

94:                                               ; preds = %89, %86
  %95 = phi i8 [ 97, %86 ], [ %92, %89 ]
  %96 = phi i64 [ 0, %86 ], [ %90, %89 ]
  %97 = getelementptr inbounds nuw i8, ptr %88, i64 %96
  %98 = load i8, ptr %97, align 1
  %99 = icmp eq i8 %95, %98
  br i1 %99, label %89, label %111

100:                                              ; preds = %89
  %101 = getelementptr inbounds nuw i8, ptr %88, i64 20
  %102 = load i32, ptr %101, align 4
  %103 = shl nuw i32 1, %102
  %104 = xor i32 %103, -1
  %105 = getelementptr inbounds nuw i8, ptr %88, i64 16
  %106 = load i32, ptr %105, align 8
  %107 = zext i32 %106 to i64
  %108 = getelementptr inbounds nuw i32, ptr %8, i64 %107
  %109 = load i32, ptr %108, align 4
  %110 = and i32 %109, %104
  store i32 %110, ptr %108, align 4
  br label %111

111:                                              ; preds = %94, %100
  %112 = add nuw nsw i64 %87, 1
  %113 = icmp eq i64 %112, 33
  br i1 %113, label %114, label %86

114:                                              ; preds = %111, %131
  %115 = phi i64 [ %132, %131 ], [ 0, %111 ]
  %116 = shl nuw i64 1, %115
  %117 = and i64 %116, 4356
  %118 = icmp eq i64 %117, 0
  br i1 %118, label %131, label %119

119:                                              ; preds = %114
  %120 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %115
  %121 = getelementptr inbounds nuw i8, ptr %120, i64 20
  %122 = load i32, ptr %121, align 4
  %123 = shl nuw i32 1, %122
  %124 = xor i32 %123, -1
  %125 = getelementptr inbounds nuw i8, ptr %120, i64 16
  %126 = load i32, ptr %125, align 8
  %127 = zext i32 %126 to i64
  %128 = getelementptr inbounds nuw i32, ptr %8, i64 %127
  %129 = load i32, ptr %128, align 4
  %130 = and i32 %129, %124
  store i32 %130, ptr %128, align 4
  br label %131

131:                                              ; preds = %119, %114
  %132 = add nuw nsw i64 %115, 1
  %133 = icmp eq i64 %132, 33
  br i1 %133, label %134, label %114

134:                                              ; preds = %131, %159
  %135 = phi i64 [ %160, %159 ], [ 0, %131 ]
  %136 = getelementptr inbounds nuw %struct.feature, ptr @features, i64 %135
  br label %142

137:                                              ; preds = %142
  %138 = add nuw nsw i64 %144, 1
  %139 = getelementptr inbounds nuw i8, ptr @.str.5, i64 %138
  %140 = load i8, ptr %139, align 1
  %141 = icmp eq i64 %138, 3
  br i1 %141, label %148, label %142

142:                                              ; preds = %137, %134
  %143 = phi i8 [ 120, %134 ], [ %140, %137 ]
  %144 = phi i64 [ 0, %134 ], [ %138, %137 ]
  %145 = getelementptr inbounds nuw i8, ptr %136, i64 %144
  %146 = load i8, ptr %145, align 1
  %147 = icmp eq i8 %143, %146
  br i1 %147, label %137, label %159

148:                                              ; preds = %137
  %149 = getelementptr inbounds nuw i8, ptr %136, i64 20
  %150 = load i32, ptr %149, align 4
  %151 = shl nuw i32 1, %150
  %152 = xor i32 %151, -1
  %153 = getelementptr inbounds nuw i8, ptr %136, i64 16
  %154 = load i32, ptr %153, align 8
  %155 = zext i32 %154 to i64
  %156 = getelementptr inbounds nuw i32, ptr %8, i64 %155
  %157 = load i32, ptr %156, align 4
  %158 = and i32 %157, %152
  store i32 %158, ptr %156, align 4
  br label %159

159:                                              ; preds = %142, %148
  %160 = add nuw nsw i64 %135, 1
  %161 = icmp eq i64 %160, 33
  br i1 %161, label %162, label %134

162:                                              ; preds = %159, %82
  %163 = icmp eq i32 %2, 1
  %164 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %165 = getelementptr inbounds nuw i8, ptr %9, i64 8
  br label %166

166:                                              ; preds = %162, %208
  %167 = phi i64 [ 0, %162 ], [ %211, %208 ]
  %168 = phi ptr [ null, %162 ], [ %202, %208 ]
  %169 = phi ptr [ @ansor_deploy_codes, %162 ], [ %210, %208 ]
  br i1 %163, label %170, label %173

170:                                              ; preds = %166
  %171 = load i64, ptr %164, align 8
  %172 = icmp eq i64 %171, %167
  br i1 %172, label %173, label %201

173:                                              ; preds = %170, %166
  store i64 0, ptr %165, align 8
  %174 = load i8, ptr %169, align 1
  %175 = icmp eq i8 %174, 32
  br i1 %175, label %187, label %176

176:                                              ; preds = %173, %176
  %177 = phi i64 [ %183, %176 ], [ 0, %173 ]
  %178 = phi i8 [ %185, %176 ], [ %174, %173 ]
  %179 = phi ptr [ %184, %176 ], [ %169, %173 ]
  %180 = mul nsw i64 %177, 10
  %181 = sext i8 %178 to i64
  %182 = add i64 %180, -48
  %183 = add i64 %182, %181
  store i64 %183, ptr %165, align 8
  %184 = getelementptr inbounds nuw i8, ptr %179, i64 1
  %185 = load i8, ptr %184, align 1
  %186 = icmp eq i8 %185, 32
  br i1 %186, label %187, label %176

187:                                              ; preds = %176, %173
  %188 = phi ptr [ %169, %173 ], [ %184, %176 ]
  %189 = getelementptr inbounds nuw i8, ptr %188, i64 1
  %190 = call fastcc i32 @lacks(ptr noundef nonnull %189, ptr noundef %8, ptr noundef null, i64 noundef 0)
  %191 = icmp eq i32 %190, 0
  br i1 %191, label %192, label %201

192:                                              ; preds = %187
  br i1 %16, label %212, label %193

193:                                              ; preds = %192
  %194 = load i32, ptr @__tvm_ffi_choose_code.set, align 4
  %195 = add nsw i32 %194, 1
  store i32 %195, ptr @__tvm_ffi_choose_code.set, align 4
  %196 = icmp eq i32 %194, 0
  %197 = icmp ne ptr @__tvm_ffi_use_threads, null
  %198 = and i1 %197, %196
  br i1 %198, label %199, label %212

199:                                              ; preds = %193
  %200 = call i32 @__tvm_ffi_use_threads(ptr noundef %0, ptr noundef nonnull %9, i32 noundef 1, ptr noundef %3)
  br label %212

201:                                              ; preds = %187, %170
  %202 = phi ptr [ %168, %170 ], [ %189, %187 ]
  br label %203

203:                                              ; preds = %206, %201
  %204 = phi ptr [ %169, %201 ], [ %207, %206 ]
  %205 = load i8, ptr %204, align 1
  switch i8 %205, label %206 [
    i8 0, label %208
    i8 59, label %208
  ]

206:                                              ; preds = %203
  %207 = getelementptr inbounds nuw i8, ptr %204, i64 1
  br label %203

208:                                              ; preds = %203, %203
  %209 = icmp eq i8 %205, 0
  %210 = getelementptr inbounds nuw i8, ptr %204, i64 1
  %211 = add nuw nsw i64 %167, 1
  br i1 %209, label %214, label %166

212:                                              ; preds = %192, %193, %199
  store i32 1, ptr %3, align 8
  %213 = getelementptr inbounds nuw i8, ptr %3, i64 8
  store i64 %167, ptr %213, align 8
  br label %270

214:                                              ; preds = %208
  %215 = icmp eq ptr %202, null
  br i1 %215, label %269, label %216

216:                                              ; preds = %214
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(400) %5, i8 0, i64 400, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %6)
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(49) %6, i8 0, i64 49, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %7)
  br label %217

217:                                              ; preds = %224, %216
  %218 = phi i64 [ 3, %216 ], [ %225, %224 ]
  %219 = getelementptr [3 x ptr], ptr @levels, i64 %218
  %220 = getelementptr i8, ptr %219, i64 -16
  %221 = load ptr, ptr %220, align 8
  %222 = call fastcc i32 @lacks(ptr noundef %221, ptr noundef nonnull readonly %8, ptr noundef null, i64 noundef 0)
  %223 = icmp eq i32 %222, 0
  br i1 %223, label %224, label %227

224:                                              ; preds = %217
  %225 = add nsw i64 %218, -1
  %226 = icmp eq i64 %225, 0
  br i1 %226, label %227, label %217

227:                                              ; preds = %224, %217
  %228 = phi i64 [ 0, %224 ], [ %218, %217 ]
  %229 = call fastcc i32 @lacks(ptr noundef nonnull %202, ptr noundef nonnull readonly %8, ptr noundef nonnull %5, i64 noundef 400)
  %230 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 -2147483648, i32 0)
  %231 = extractvalue { i32, i32, i32, i32 } %230, 0
  %232 = icmp ult i32 %231, -2147483644
  br i1 %232, label %255, label %233

233:                                              ; preds = %227, %233
  %234 = phi i64 [ %253, %233 ], [ 0, %227 ]
  %235 = trunc i64 %234 to i32
  %236 = add i32 %235, -2147483646
  %237 = tail call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 range(i32 0, -2147483643) %236, i32 0)
  %238 = extractvalue { i32, i32, i32, i32 } %237, 0
  %239 = extractvalue { i32, i32, i32, i32 } %237, 1
  %240 = extractvalue { i32, i32, i32, i32 } %237, 2
  %241 = extractvalue { i32, i32, i32, i32 } %237, 3
  %242 = zext i32 %239 to i64
  %243 = shl nuw i64 %242, 32
  %244 = zext i32 %238 to i64
  %245 = or disjoint i64 %243, %244
  %246 = zext i32 %241 to i64
  %247 = shl nuw i64 %246, 32
  %248 = zext i32 %240 to i64
  %249 = or disjoint i64 %247, %248
  %250 = shl nuw nsw i64 %234, 4
  %251 = getelementptr inbounds nuw i8, ptr %6, i64 %250
  store i64 %245, ptr %251, align 16
  %252 = getelementptr inbounds nuw i8, ptr %251, i64 8
  store i64 %249, ptr %252, align 8
  %253 = add nuw nsw i64 %234, 1
  %254 = icmp eq i64 %253, 3
  br i1 %254, label %255, label %233

255:                                              ; preds = %233, %227
  br label %256

256:                                              ; preds = %255, %256
  %257 = phi ptr [ %260, %256 ], [ %6, %255 ]
  %258 = load i8, ptr %257, align 1
  %259 = icmp eq i8 %258, 32
  %260 = getelementptr inbounds nuw i8, ptr %257, i64 1
  br i1 %259, label %256, label %261

261:                                              ; preds = %256
  %262 = getelementptr inbounds nuw [3 x ptr], ptr @levels, i64 %228
  %263 = icmp eq i8 %258, 0
  %264 = select i1 %263, ptr @.str.8, ptr @.str.7
  %265 = load ptr, ptr %262, align 8
  %266 = getelementptr inbounds nuw i8, ptr %262, i64 16
  %267 = load ptr, ptr %266, align 8
  %268 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %7, i64 noundef 700, ptr noundef nonnull @.str.9, ptr noundef nonnull %5, ptr noundef nonnull %257, ptr noundef nonnull %264, ptr noundef %265, ptr noundef %267)
  call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str, ptr noundef nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %7)
  call void @llvm.lifetime.end.p0(ptr nonnull %6)
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %270

269:                                              ; preds = %214
  tail call void @TVMFFIErrorSetRaisedFromCStr(ptr noundef nonnull @.str, ptr noundef nonnull @.str.1)
  br label %270

270:                                              ; preds = %212, %269, %261
  %271 = phi i32 [ -1, %261 ], [ -1, %269 ], [ 0, %212 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %9)
  call void @llvm.lifetime.end.p0(ptr nonnull %8)
  ret i32 %271
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
  %46 = icmp eq i64 %45, 33
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
  %64 = select i1 %63, ptr @.str.8, ptr @.str.7
  %65 = trunc i64 %13 to i32
  %66 = tail call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef %61, i64 noundef %62, ptr noundef nonnull @.str.6, ptr noundef nonnull %64, i32 noundef %65, ptr noundef nonnull %8)
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
