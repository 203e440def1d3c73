// Answers the SQL statements that standard input holds as a JSON list with
// DuckDB (from the npm folder that is the first argument), in the folder that
// is the second: one list of rows each, as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , modules, folder] = process.argv;
const { DuckDBInstance } = createRequire(join(modules, "x.js"))("@duckdb/node-api");
process.chdir(folder);
const db = await (await DuckDBInstance.create(":memory:")).connect();
const answers = [];
for (const sql of JSON.parse(readFileSync(0, "utf8"))) {
  const reader = await db.runAndReadAll(sql);
  answers.push(reader.getRowsJson());
}
process.stdout.write(JSON.stringify(answers) + "\n", () => process.exit(0));
