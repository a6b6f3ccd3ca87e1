"""Ways to damage a record, by name: the change, and what the refusal must mention."""

import json

from ansor_deploy.marks import marks
from ansor_deploy.system.digest import canonical_json, sha256
from helpers.foreign import DECISIONS, INDEX_MAP, INSTRUCTIONS, trace

LLVM = "; ModuleID = 'x'\n@llvm.global_ctors = appending global [1 x ptr] [ptr @evil]"


def with_trace(change):
    """Damage a record's trace. change: edits copies of its instructions and decisions."""

    def spoil(one):
        instructions, decisions = json.loads(canonical_json([INSTRUCTIONS, DECISIONS]))
        change(instructions, decisions)
        one["record"]["trace"] = trace(instructions, decisions)

    return spoil


def plus(*instruction):
    return with_trace(lambda steps, chosen: steps.append(list(instruction)))


def step(at, *path_and_value):
    """Replace a part of an instruction."""
    *path, value = path_and_value

    def change(steps, chosen):
        part = steps[at]
        for index in path[:-1]:
            part = part[index]
        part[path[-1]] = value

    return with_trace(change)


def decided(at, value):
    return with_trace(lambda steps, chosen: chosen.__setitem__(at, value))


def index_map(change):
    """Damage the index map."""

    def spoil(steps, chosen):
        graph = json.loads(json.dumps(INDEX_MAP))
        change(graph)
        steps[11][1][1] = json.dumps(graph)

    return with_trace(spoil)


def node(at, value):
    return index_map(lambda graph: graph["nodes"].__setitem__(at, value))


def field(*path_and_value):
    """Replace a field of the record, workload or target."""
    *path, name, value = path_and_value

    def change(one):
        part = one
        for key in path:
            part = part[key]
        part[name] = value

    return change


def workload_text(text):
    def change(one):
        one["workload"]["text"] = text
        one["workload"]["key"] = one["record"]["key"]["workload"] = sha256(text)

    return change


def without(*path):
    def change(one):
        part = one
        for key in path[:-1]:
            part = part[key]
        del part[path[-1]]

    return change


def exponential(graph):
    """Make an expression with 2^100 terms out of a hundred nodes."""
    last = 3
    for _ in range(100):
        graph["nodes"].append(
            {"type": "prim.Add", "data": {"span": 0, "ty": 1, "a": last, "b": last}}
        )
        last = len(graph["nodes"]) - 1
    graph["nodes"].append({"type": "ffi.Array", "data": [last]})
    graph["nodes"].append(
        {
            "type": "tirx.IndexMap",
            "data": {"initial_indices": 4, "final_indices": last + 1, "inverse_index_map": 0},
        }
    )
    graph["root_index"] = last + 2


def deep(one):
    one["record"]["trace"] = "[" * 100_000 + "]" * 100_000


# Invalid values of every mark of lowering.
JUNK = {"code": f'"{LLVM}"', "a word": '"x"', "less than nothing": -1, "a huge number": 1 << 40}
OF_MARKS = {
    f"{key} with {name}": (plus("Annotate", ["l10", value], [key], []), f"Annotate {key} with")
    for mark in marks().values()
    for key in mark.values
    for name, value in JUNK.items()
}

HOSTILE = {
    **OF_MARKS,
    # Code
    "LLVM IR": (plus("Annotate", ["l10", f'"{LLVM}"'], ["pragma_import_llvm"], []), "Annotate"),
    "C code": (plus("Annotate", ["l10", '"int x;"'], ["pragma_import_c"], []), "pragma_import_c"),
    "code under an allowed key": (
        plus("Annotate", ["l10", f'"{LLVM}"'], ["pragma_auto_unroll_max_step"], []),
        "Annotate",
    ),
    "unknown annotation": (plus("Annotate", ["l10", 1], ["pragma_unknown"], []), "pragma_unknown"),
    "annotation key that is a list": (plus("Annotate", ["l10", 1], [["x"]], []), "Annotate"),
    "annotation of the wrong thing": (
        plus("Annotate", ["b1", 16], ["pragma_auto_unroll_max_step"], []),
        "Annotate",
    ),
    "annotation with IR": (
        plus("Annotate", ["b1", json.dumps(INDEX_MAP)], ["meta_schedule.parallel"], []),
        "Annotate",
    ),
    "unknown instruction": (plus("Explode", ["b1"], [], []), "Explode"),
    "instruction that is a number": (plus(1, [], [], []), "no instruction"),
    "Blockize of what overlaps": (
        with_trace(
            lambda steps, chosen: steps.extend(
                [["ComputeAt", ["b1", "l6"], [True, -1], []], ["Blockize", ["l9"], [True], ["b90"]]]
            )
        ),
        "after a block was moved",
    ),
    "UnsafeSetDType": (plus("UnsafeSetDType", ["b1"], [0, "int8"], []), "UnsafeSetDType"),
    "UnsafeHideBufferAccess": (
        plus("UnsafeHideBufferAccess", ["b1"], ["read", [0]], []),
        "UnsafeHideBufferAccess",
    ),
    "AnnotateBufferAccess": (
        plus("AnnotateBufferAccess", ["b1", "None"], [0, 0], []),
        "AnnotateBufferAccess",
    ),
    "split without predicate": (step(3, 2, 1, True), "Split"),
    "block layout of another kind": (step(12, 2, 0, 7), "TransformBlockLayout"),
    "block layout that is none": (step(12, 2, 0, "{"), "is not an index map"),
    "fetching of nothing": (plus("Annotate", ["l10", 0], ["ansor.prefetch"], []), "Annotate"),
    "fetching of no rows": (plus("Annotate", ["l10", 0], ["ansor.prefetch_rows"], []), "Annotate"),
    "vectors of what": (plus("Annotate", ["l10", 4], ["ansor.row_vectors"], []), "Annotate"),
    "padding value": (step(11, 2, 2, 7), "TransformLayout"),
    "promised bijection": (step(11, 2, 3, 1), "TransformLayout"),
    "foreign intrinsic": (plus("Tensorize", ["b1"], ["call_libc_system", True], []), "Tensorize"),
    "foreign intrinsic to come": (
        plus("Annotate", ["b1", '"evil"'], ["meta_schedule.auto_tensorize"], []),
        "auto_tensorize",
    ),
    "GPU threads on a CPU": (plus("Bind", ["l10"], ["threadIdx.x"], []), "GPU"),
    "unknown thread": (plus("Bind", ["l10"], ["threadIdx.x; system()"], []), "Bind"),
    "shared memory on a CPU": (plus("SetScope", ["b1"], [0, "shared"], []), "shared"),
    "unknown memory": (plus("SetScope", ["b1"], [0, "texture"], []), "SetScope"),
    "another function": (step(0, 2, 1, "other"), "GetSBlock"),
    # Serialised IR
    "IR that is no index map": (
        node(10, {"type": "ir.IRModule", "data": {"functions": 0}}),
        "ir.IRModule",
    ),
    "call in an index map": (
        node(7, {"type": "tirx.Call", "data": {"op": 0, "args": 4}}),
        "tirx.Call",
    ),
    "string constant in an index map": (node(5, {"type": "ir.StringImm", "data": {}}), "StringImm"),
    "node of itself": (
        node(7, {"type": "prim.FloorDiv", "data": {"span": 0, "ty": 1, "a": 7, "b": 6}}),
        "later or never",
    ),
    "node before the first": (
        node(7, {"type": "prim.FloorDiv", "data": {"span": 0, "ty": 1, "a": -1, "b": 6}}),
        "later or never",
    ),
    "division by zero": (node(5, {"type": "int", "data": 0}), "zero"),
    "huge number in an index map": (node(5, {"type": "int", "data": 1 << 40}), "counts"),
    "float index": (
        node(1, {"type": "ir.PrimType", "data": {"span": 0, "dtype": "float32"}}),
        "has element for type",
    ),
    "index of no type": (
        node(1, {"type": "ir.PrimType", "data": {"span": 0, "dtype": "handle"}}),
        "handle",
    ),
    "padding that varies": (step(11, 2, 2, json.dumps(INDEX_MAP)), "no constant"),
    "padding by other IR": (
        step(11, 2, 2, json.dumps(INDEX_MAP).replace("tirx.IndexMap", "tirx.PrimFunc")),
        "tirx.PrimFunc",
    ),
    "variable from nowhere": (node(4, {"type": "ffi.Array", "data": []}), "foreign variable"),
    "expression without end": (index_map(exponential), "without end"),
    "no root": (index_map(lambda graph: graph.update(root_index=99)), "root"),
    "field twice in an index map": (
        step(11, 1, 1, json.dumps(INDEX_MAP)[:-1] + ', "root_index": 0}'),
        "twice",
    ),
    "long index map": (step(11, 1, 1, "{" + " " * 40_000), "too long"),
    "index map that is none": (step(11, 1, 1, "{"), "is not an index map"),
    "nested index map": (step(11, 1, 1, '{"a":' * 6000), "index map"),
    "wrapped object": (step(11, 1, 1, {"ansor_deploy.index_map": "x"}), "TransformLayout"),
    # Sizes and numbers
    "thousands of instructions": (
        with_trace(lambda steps, chosen: steps.extend([["Reorder", ["l6"], [], []]] * 5000)),
        "5017 instructions",
    ),
    "hundreds of inputs": (step(5, 1, ["l6"] * 500), "too many parts"),
    "unrolling without end": (
        with_trace(
            lambda steps, chosen: steps.extend(
                [
                    ["Split", ["l9", "None", 100_000], [True, False], ["l90", "l91"]],
                    ["Unroll", ["l91"], [], []],
                ]
            )
        ),
        "100000",
    ),
    "a vector without end": (decided(0, [2, [8, 1 << 20]]), "unrolled or one vector"),
    "unroll step without end": (step(15, 1, 1, 1 << 30), "pragma_auto_unroll_max_step"),
    "chosen unroll step without end": (step(13, 2, 0, [0, 1 << 20, 64]), "unroll_explicit"),
    "factor beyond int32": (step(4, 1, 2, 1 << 31), "Split"),
    "factor of zero": (step(4, 1, 2, 0), "Split"),
    "negative factor": (step(4, 1, 2, -4), "Split"),
    "factor that is true": (step(4, 1, 2, True), "Split"),
    "tiles beyond int32": (decided(0, [2, [1 << 20, 1 << 20]]), "tile sizes"),
    "too few tiles": (decided(0, [2, [8]]), "tile sizes"),
    "choice out of range": (decided(1, [13, 3]), "choice"),
    "negative choice": (decided(1, [13, -1]), "choice"),
    "decision for nothing": (decided(1, [99, 1]), "SampleCategorical"),
    "decision too many": (with_trace(lambda steps, chosen: chosen.append([99, 1])), "not there"),
    "decision twice": (with_trace(lambda steps, chosen: chosen.append([13, 2])), "each once"),
    "decision that is null": (decided(1, [13, None]), "null"),
    "decision where none belongs": (
        with_trace(lambda steps, chosen: chosen.append([5, 1])),
        "has a decision",
    ),
    "huge integer": (field("record", "provenance", "seed", 10**30), "seed"),
    "thousands of digits": (field("record", "trace", f"[[{'9' * 5000}],[]]"), "not JSON"),
    # Structure of a trace
    "variable from later": (step(1, 1, ["b11"]), "GetLoops"),
    "loop for a block": (step(1, 1, ["l2"]), "GetLoops"),
    "variable made twice": (step(4, 3, ["l6", "l9"]), "no new variable"),
    "strange variable": (step(0, 3, ["__import__"]), "no new variable"),
    "trace that is an object": (field("record", "trace", "{}"), "a trace is"),
    "trace that is no text": (field("record", "trace", [[], []]), "no text"),
    "trace with spaces": (field("record", "trace", "[[], []]"), "canonical"),
    "trace with NaN": (field("record", "trace", "[[NaN],[]]"), "not JSON"),
    "JSON bomb": (deep, "nested"),
    "megabytes": (field("record", "trace", "[[" + '"x",' * 90_000 + '"x"],[]]'), "characters"),
    # Times and proof
    "no times": (field("record", "seconds", []), "times"),
    "zero": (field("record", "seconds", [0.0]), "times"),
    "negative": (field("record", "seconds", [-1e-3]), "times"),
    "a day": (field("record", "seconds", [86_400.0]), "times"),
    "faster than light": (field("record", "seconds", [1e-15]), "times"),
    "text for times": (field("record", "seconds", ["1e-3"]), "times"),
    "true for times": (field("record", "seconds", [True]), "times"),
    "no call is so short": (field("record", "seconds", [1.01e-9]), "times"),
    "more work than a machine can do": (field("workload", "flops", 1e12), "no machine"),
    "more bytes than a machine can move": (field("workload", "bytes", 1e12), "no machine"),
    "no proof": (field("record", "proof", {}), "proof"),
    "null for proof": (field("record", "proof", None), "proof"),
    "wrong results": (field("record", "proof", "max_rel_err", 0.5), "proves nothing"),
    "unknown oracle": (field("record", "proof", "oracle", "trust me"), "proves nothing"),
    "more in the proof": (field("record", "proof", "note", "x"), "fields"),
    # Text
    "control characters": (field("record", "provenance", "device", "a\x1b[2Jb"), "device"),
    "path": (field("record", "provenance", "device", "../../etc/passwd"), "device"),
    "rule's name": (field("record", "provenance", "derived_by", ["a\x1b[2J"]), "derived_by"),
    "no clock": (field("record", "provenance", "clock", 0), "clock"),
    "no rules": (field("record", "provenance", "derived_by", []), "derived_by"),
    "look-alike letters": (field("record", "provenance", "search", "\u0430nsor"), "search"),
    "right to left": (field("record", "provenance", "tool", "0.1\u202e0"), "tool"),
    "lone surrogate": (field("record", "provenance", "device", "\ud800"), "device"),
    "line break": (field("record", "provenance", "search", "ansor\n"), "search"),
    "a day that is none": (field("record", "provenance", "created", "now"), "created"),
    "long name": (field("workload", "op", "x" * 1000), "op"),
    "unknown field": (field("record", "provenance", "run", "x"), "fields"),
    "missing field": (without("record", "provenance", "tool"), "fields"),
    "list for an object": (field("record", "provenance", []), "object"),
    # Target and workload
    "foreign target": (field("record", "key", "target", "0" * 64), "target"),
    "target that is no text": (field("record", "key", "target", 5), "no key"),
    "unhashable key": (field("record", "key", "target", []), "no key"),
    "cores without end": (field("target", "cores", 1 << 60), "cores"),
    "cpu with options": (field("target", "cpu", "generic -mattr=+evil"), "cpu"),
    "unknown kind of target": (field("target", "kind", "c"), "kind"),
    "gpu of a CPU": (field("target", "gpu", {"arch": "sm_70"}), "fields"),
    "features without end": (
        field("target", "features", [f"+x{n:04}" for n in range(2000)]),
        "too long",
    ),
    "look-alike field of a gpu": (field("target", "gpu", {"\u0430rch": "sm_70"}), "fields"),
    "unknown field of a target": (field("target", "note", "x"), "fields"),
    "Python for a program": (
        workload_text("@T.prim_func\nimport os\nos.system('id')\n"),
        "no canonical",
    ),
    "Python within a program": (
        workload_text("@T.prim_func\ndef main(v0: __import__('os').system('id')):\n"),
        "no canonical",
    ),
    "program of another name": (workload_text("print(1)"), "no canonical"),
    "megabytes of program": (workload_text("@T.prim_func\n" + " " * 500_000), "no canonical"),
    "program of another key": (field("workload", "text", "@T.prim_func\n"), "digest"),
    "shape that is none": (field("workload", "shapes", [[-1], [1]]), "shapes"),
    "dtype that is none": (field("workload", "dtypes", ["float32", "../x"]), "dtypes"),
    "work without end": (field("workload", "bytes", 1e300), "bytes"),
}
