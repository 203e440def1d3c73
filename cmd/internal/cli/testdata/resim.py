"""An independent simulation of a BIR module, from the rules in docs/model.md.

usage: resim.py MACHINE.json MODULE.bir.json RUN_A.json RUN_B.json

MACHINE.json is what `perfsim machine show --json` prints. Every instruction is
costed and placed here, in both runs, and compared with the traces that perfsim
wrote: start, duration and thread. It shares no code with perfsim; it knows what
the examples use. Prints one line and exits 0 if all is equal.
"""
import json
import sys

SIZE = {"bfloat16": 2, "float16": 2, "float32": 4, "uint8": 1, "int32": 4}
DMA = {"Load", "Save", "DMACopy", "GenericIndirectLoad", "IndirectLoad", "GenericIndirectSave",
       "IndirectSave", "IndirectSaveAccumulate", "DMA"}
THREAD = {"Unassigned": 0, "Pool": 1, "Activation": 2, "PE": 3, "DMA": 4, "DVE": 5, "SP": 6, "ALL": 0}
CLOCK = {"PE": "PE", "Activation": "Activation", "Pool": "Pool", "DVE": "DVE"}


class Module:
    def __init__(self, doc):
        self.memory = {}  # placement -> (type, first byte of the placement)
        for f in doc["functions"]:
            for a in f.get("allocations", []):
                for loc in a.get("memorylocations", []):
                    start = loc.get("addr", 0)
                    if loc["type"] == "PSUM" and loc.get("bank", 0) > 0 and start // 2048 != loc["bank"]:
                        start += loc["bank"] * 2048
                    self.memory[loc["name"]] = (loc["type"], start, loc["dims"])

    def banks(self, operands):
        out = set()
        for o in operands:
            kind, start, dims = self.memory.get(o.get("memref"), ("?", 0, []))
            if kind != "PSUM":
                continue
            size = SIZE[o["dtype"]]
            pitch = max(dims[1] // size, 1)
            first = start + o.get("offset", 0) % pitch * size
            span = sum((n - 1) * abs(s) for s, n in o["ap"][1:]) * size + size
            out |= set(range(first // 2048, (first + span - 1) // 2048 + 1))
        return out

    def in_psum(self, o):
        return self.memory.get(o.get("memref"), ("?",))[0] == "PSUM"


def nep(o):
    n = 1
    for _, count in o["ap"][1:]:
        n *= count
    return n


class Costs:
    def __init__(self, machine, module):
        self.m, self.ref, self.module = machine, machine["reference"], module

    def clock(self, inst, cost):
        name = cost.get("clock", "") or CLOCK.get(inst["engine"], "SP").lower()
        table = {k.replace("_", ""): v for k, v in self.m["clock"].items()}
        return table[name]

    def of(self, inst):
        op = inst["opcode"]
        cost = self.ref["costs"].get(op, self.ref["default_cost"])
        aps = [o for o in inst.get("ins", []) + inst.get("outs", []) if "ap" in o]
        tensors = [o for o in inst.get("ins", []) if "ap" in o]
        first = (tensors or [o for o in inst.get("outs", []) if "ap" in o] or [None])[0]
        n = max([nep(o) for o in aps], default=0)
        size = SIZE[first["dtype"]] if first else 0
        form = cost.get("form", "")
        if form == "affine":
            mult, base = cost.get("mult", 0), cost.get("base", 0)
            if size == 2:
                mult, base = cost.get("mult_16bit", 0) or mult, cost.get("base_16bit", 0) or base
            elif size == 4:
                mult, base = cost.get("mult_32bit", 0) or mult, cost.get("base_32bit", 0) or base
            if len(tensors) > 1 and cost.get("mult_psum", 0) and self.module.in_psum(tensors[0]) != self.module.in_psum(tensors[1]):
                mult = cost.get("mult_psum", 0)
            cycles = max(mult * n + base, cost.get("min", 0))
            return int(cycles * 100 / self.clock(inst, cost))
        if form == "matmul":
            k = nep(inst["outs"][0]) >> 1
            if size == 4 and cost.get("mult_32bit", 0):
                k = int(k * cost.get("mult_32bit", 0))
            return 20 * (5 * k + 5 * cost.get("base", 0)) // self.clock(inst, cost)
        if form == "dma":
            d = self.ref["dma"]
            cycles = {"HWDGE": d["dge_hw_cycles"], "SWDGE": d["dge_sw_cycles"]}.get(inst.get("dge_type"), d["dge_none_cycles"])
            overhead = cycles if d["dge_plain_ns"] else cycles * 100 // self.m["clock"]["pe"]
            parts = first["ap"][0][1]
            move = n * parts // d["div8"] if size == 1 else (parts + 15) // 16 * (size * n) // d["div"]
            return d["read_init_ns"] + overhead + move
        if form == "collective":
            # A module does not tell the algorithm: what one device puts in counts.
            moved = size * n * tensors[0]["ap"][0][1]
            return cost.get("base", 0) + int(moved / cost.get("mult", 0))
        return 0


def simulate(machine, doc, honour_anti):
    """Returns by name (start, duration, thread) of every placed instruction."""
    module = Module(doc)
    costs = Costs(machine, module)
    ref = machine["reference"]
    timeline, bank, event = {}, {}, {}  # lane -> next dispatch, bank -> same, name -> (start, dur, next, lane)
    running = []  # collectives: (start, end, stream)

    def reflow(start, work, stream):
        shares = ref["collective_stream_shares"]
        t, left = start, float(work)
        while left > 0:
            total, until = shares[stream], None
            for s, e, other in running:
                if other == stream:
                    continue
                if s <= t < e:
                    total += shares[other]
                    until = e if until is None else min(until, e)
                elif s > t and e > s:
                    until = s if until is None else min(until, s)
            slow = max(total, 1)
            if until is None or left * slow <= until - t:
                return t + int(left * slow + 0.5) - start
            left -= (until - t) / slow
            t = until
        return t - start

    def place(inst):
        op = inst["opcode"]
        stream = None
        if op == "CollectiveCompute":
            stream = inst.get("stream_id", 0)
            lane = 7 + stream  # the thread of the stream
        else:
            lane = THREAD["DMA"] if op in DMA else THREAD[inst["engine"]]
        ready = 0
        for dep in inst.get("dependencies", []):
            producer, kind = dep if isinstance(dep, list) else (dep, "Flow")
            if producer not in event or kind == "Anti" and not honour_anti:
                continue
            start, dur, leaves, _ = event[producer]
            ready = max(ready, leaves if kind == "Ordered" else start + dur)
        start = max(ready, timeline.get(lane, 0))
        written = module.banks(inst.get("outs", []))
        for b in written:
            start = max(start, bank.get(b, 0))
        dur = costs.of(inst)
        if stream is not None:
            dur = int(dur / ref["collective_stream_shares"][stream])
            dur = reflow(start, dur, stream)
            running.append((start, start + dur, stream))
        end = start + dur
        if dur <= ref["overlap_compute_ns"] or stream is not None:
            leaves = end
        elif lane == THREAD["DMA"]:
            leaves = end if dur < ref["overlap_dma_ns"] else end - ref["overlap_dma_ns"]
        else:
            leaves = end - ref["overlap_compute_ns"]
        timeline[lane] = leaves
        if dur > 0:
            for b in written | module.banks(inst.get("ins", [])):
                bank[b] = leaves
        event[inst["name"]] = (start, dur, leaves, lane)

    def walk(blocks):
        for b in blocks:
            for inst in b["instructions"]:
                if "blocks" in inst:
                    walk(inst["blocks"])
                else:
                    place(inst)

    for f in doc["functions"]:
        walk(f["blocks"])
    return {name: (s, d, lane) for name, (s, d, _, lane) in event.items()}


def main(machine_file, module_file, *traces):
    machine, doc = json.load(open(machine_file)), json.load(open(module_file))
    for honour_anti, trace in zip((True, False), traces):
        want = simulate(machine, doc, honour_anti)
        got = {e["name"]: (e["ts"], e["dur"], e["tid"]) for e in json.load(open(trace)) if e["ph"] == "X"}
        wrong = [n for n in sorted(set(want) | set(got)) if want.get(n) != got.get(n)]
        for n in wrong[:10]:
            print(f"{trace}: {n} is {got.get(n)} in the trace and {want.get(n)} by the rules")
        if wrong:
            sys.exit(f"{len(wrong)} of {len(want)} instructions differ")
        print(f"{len(want)} instructions equal, latency {max(s + d for s, d, _ in want.values())} ns")


main(*sys.argv[1:])
