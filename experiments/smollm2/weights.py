"""SmolLM2-135M-Instruct's weights as an ordinary Hugging Face folder, out of the file that llama.cpp serves.

    make smollm2-weights ARGS=experiments/runs/smollm2

The file holds 4 bits a weight; what is written is their values in float32, which can be trained on. The folder is made
once: one that is whole is left as it is.
"""

import argparse
import shutil
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer


def main() -> None:
    """Convert the file, into a folder that appears when it is whole."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="GGUF file")
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    if (chosen.out / "config.json").is_file():
        print(f"{chosen.out} is there already")
        return
    half = chosen.out.with_name(chosen.out.name + ".part")
    shutil.rmtree(half, ignore_errors=True)
    source = {"pretrained_model_name_or_path": chosen.model.parent, "gguf_file": chosen.model.name}
    read = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = AutoConfig.from_pretrained(**source)
    plain = AutoModelForCausalLM.from_config(
        config
    )  # the one that was read refuses to be saved: it was quantised
    plain.load_state_dict(read.state_dict())
    plain.save_pretrained(half)
    AutoTokenizer.from_pretrained(**source).save_pretrained(half)
    half.rename(chosen.out)
    print(f"{chosen.out}: {sum(weight.numel() for weight in plain.parameters()):,} parameters")


if __name__ == "__main__":
    main()
