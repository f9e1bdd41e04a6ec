"""A process that repairs sketches with one version of the library, for `benchmarks.repair_speed`.

It reads lines of JSON, each a list of sketches, and writes for each sketch the processor seconds and a hash of the
result.
"""

import hashlib
import json
import sys
import time

from sketchdnn.constraints.repair import repair
from sketchdnn.geometry import Sketch


def main() -> None:
    """Repair until the input ends."""
    for line in sys.stdin:
        results = []
        for data in json.loads(line):
            sketch = Sketch.from_dict(data)
            start = time.process_time()
            result = repair(sketch)
            seconds = time.process_time() - start
            results.append((seconds, hashlib.sha256(repr(result).encode()).hexdigest()))
        sys.stdout.write(json.dumps(results) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
