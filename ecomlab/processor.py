"""Settings under which another x86 processor computes the same last bits."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def same_kernels() -> dict[str, str]:
    """Name the environment variables that keep PyTorch and MKL to AVX2 where there is AVX-512; none elsewhere.

    Left alone, each takes the widest vectors that there are, sums in another order, and a run's tokens differ from
    another machine's after a few steps. Both are read once, when torch is imported.
    """
    try:
        with CPUINFO.open(encoding="utf-8", errors="replace") as file:
            first = file.read(20_000)  # one processor's entry; a large machine has hundreds
    except OSError:
        return {}
    if "avx512f" not in first:
        return {}
    return {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
