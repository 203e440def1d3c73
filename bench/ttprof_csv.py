"""Zone statistics of a device log with nothing but Python's csv module.

The yardstick for perfsim profile: what a plain script costs that pairs the
starts and ends of each processor and sums durations by zone. Columns are
found by name. Usage: ttprof_csv.py LOG
"""

import csv
import sys
import time


def main(path):
    began = time.perf_counter()
    stacks = {}
    zones = {}
    rows = unmatched = 0
    with open(path, newline="") as f:
        f.readline()
        reader = csv.reader(f)
        names = {name.strip(): i for i, name in enumerate(next(reader))}
        dev, x, y = names["PCIe slot"], names["core_x"], names["core_y"]
        risc, tick = names["RISC processor type"], names["time[cycles since reset]"]
        run, zone, kind = names["run host ID"], names["zone name"], names["type"]
        line, source = names["source line"], names["source file"]
        for row in reader:
            rows += 1
            what = row[kind]
            lane = (row[dev], row[x], row[y], row[risc])
            key = (row[zone], row[line], row[source], row[run])
            if what == "ZONE_START":
                stacks.setdefault(lane, []).append((key, int(row[tick])))
            elif what == "ZONE_END":
                stack = stacks.get(lane)
                if stack and stack[-1][0] == key:
                    start = stack.pop()[1]
                    zones.setdefault((key[0], lane[3]), []).append(int(row[tick]) - start)
                else:
                    unmatched += 1
    out = []
    for (name, processor), d in sorted(zones.items()):
        d.sort()
        out.append((name, processor, len(d), sum(d), sum(d) / len(d), d[len(d) // 2], d[0], d[-1]))
    seconds = time.perf_counter() - began
    total = sum(o[2] for o in out)
    cycles = sum(o[3] for o in out)
    print(f"rows={rows} zones={total} cycles={cycles} unmatched={unmatched} seconds={seconds:.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
