"""The rules, for BUILD files.

    load("@ansor_deploy//:defs.bzl", "ansor_model")

    ansor_model(
        name = "digits",
        model = "digits.onnx",
        lock = "digits.lock",
    )
"""

load("//private:model.bzl", _ansor_model = "ansor_model")
load("//private:providers.bzl", _AnsorInfo = "AnsorInfo")
load("//private:toolchain.bzl", _ansor_toolchain = "ansor_toolchain")
load("//private:tune.bzl", _ansor_tune = "ansor_tune")

AnsorInfo = _AnsorInfo
ansor_toolchain = _ansor_toolchain
ansor_tune = _ansor_tune

def ansor_model(
        name,
        model,
        lock,
        data = [],
        target = "",
        descriptor = None,
        extended = [],
        input_shapes = {},
        rules = [],
        devices = [],
        tune_options = [],
        visibility = None,
        **kwargs):
    """A model as a library: `NAME.so`, `NAME.h`, and what describes them, from a lock's records.

    In the `deps` of a C++ program it brings NAME.h, the C API and the runtime, and the library
    among the program's runfiles; in the `data` of any program the library and its manifest.
    `bazel run :NAME_tune` writes the lock.

    Args:
      name: of the target, and of the files.
      model: the ONNX file.
      lock: the records' file. It lies in the source tree, for version control.
      data: files with weights that the model names.
      target: name of a shipped machine to build for. By default the toolchain's.
      descriptor: a machine's TOML file, instead of `target`.
      extended: files of descriptors that `descriptor` extends, but for shipped ones.
      input_shapes: {"NAME": "1,3,224,224"} for dynamic inputs.
      rules: files of derivation rules beyond the shipped ones.
      devices: to tune on, instead of all that were added for the target.
      tune_options: of the tuning, such as ["--time", "10m"].
      visibility: of both targets.
      **kwargs: what all rules take, tags, testonly and others; and `runtime`, a cc_library of the
        C API and TVM's runtime for a machine that is not this one.
    """
    common = dict(
        data = data,
        target = target,
        descriptor = descriptor,
        extended = extended,
        input_shapes = input_shapes,
        rules = rules,
        visibility = visibility,
    )
    _ansor_model(
        name = name,
        model = model,
        lock = lock,
        library = name + ".so",
        header = name + ".h",
        manifest = name + ".json",
        provenance = name + ".intoto.json",
        **dict(common, **kwargs)
    )
    ansor_tune(
        name = name + "_tune",
        models = [model],
        lock = lock,
        devices = devices,
        options = tune_options,
        # Not a part of `//...`: nothing but a person starts it, where there is a device to time.
        tags = ["local", "manual", "no-cache", "no-remote"],
        **common
    )
