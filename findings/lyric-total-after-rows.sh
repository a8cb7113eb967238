#!/usr/bin/env bash
# Lyric 0.19.0: a page of a list and its totalRecords are of different moments, so a record can be on no page.
#
# Lyric reads the rows of a page, then builds their compound view, by one query or more for each row, and then counts the list. Of 41 records, with
# pageSize 40, one of the first 40 is deleted while the page is built: the page has 40 rows and totalRecords 40, totalPages 1. The record that moved
# from row 41 to row 40 is on none of these pages. A client should read on after each full page and compare.
#
# Needs Node.js, npm, PostgreSQL 14 or later (initdb and pg_ctl) and access to npm packages. Exits 0 when the behaviour is as described, 1 when it
# has changed.
set -euo pipefail
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
[ -x "$bin/initdb" ] || bin=$(dirname "$(readlink -f "$(command -v initdb)")")
work=$(mktemp -d)
as() { if [ "$(id -u)" = 0 ]; then runuser -u nobody -- "$@"; else "$@"; fi; }
trap 'as "$bin/pg_ctl" -D "$work/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
cd "$work"
mkdir data && chmod 755 "$work"
if [ "$(id -u)" = 0 ]; then chown nobody data; fi
as "$bin/initdb" -D "$work/data" -A trust -U app >/dev/null
port=$((20000 + RANDOM % 10000))
as "$bin/pg_ctl" -D "$work/data" -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$work/data" -l "$work/data/log" -w start >/dev/null
echo '{"private":true,"type":"module"}' >package.json
npm install --no-audit --no-fund --silent @overture-stack/lyric@0.19.0 express@5.3.0 pg@8 >/dev/null
cat >main.mjs <<'JS'
import express from 'express';
import http from 'node:http';
import pg from 'pg';
import { provider, migrate, errorHandler } from '@overture-stack/lyric';

const listen = (handler) => new Promise((done) => { const s = http.createServer(handler).listen(0, '127.0.0.1', () => done(s.address().port)); });
const schemas = [
  { name: 'donor', restrictions: { uniqueKey: ['donor_id'] }, fields: [{ name: 'donor_id', valueType: 'string', unique: true, restrictions: { required: true } }] },
  { name: 'specimen', restrictions: { foreignKey: [{ schema: 'donor', mappings: [{ local: 'donor_id', foreign: 'donor_id' }] }] },
    fields: [{ name: 'donor_id', valueType: 'string' }, { name: 'specimen_id', valueType: 'string' }] },
];
const lectern = await listen((q, r) => {
  r.setHeader('content-type', 'application/json');
  r.end(JSON.stringify([{ _id: 'a', name: 'clinic', version: '1.0', schemas, createdAt: '2026-01-01T00:00:00Z' }]));
});
const db = { host: '127.0.0.1', port: +process.env.PG_PORT, database: 'postgres', user: 'app', password: 'app' };
const log = console.log;
console.log = () => {};
await migrate(db);
const lyric = provider({ auth: { enabled: false }, db, features: { audit: { enabled: true }, recordHierarchy: { pluralizeSchemasName: true } },
  idService: { useLocal: true, customAlphabet: '0123456789ABCDEF', customSize: 21 }, logger: { file: false, json: false, level: 'error' },
  schemaService: { url: `http://127.0.0.1:${lectern}` }, submissionService: { maxFileSize: 10485760 }, validator: [] });
const app = express();
app.use('/dictionary', lyric.routers.dictionary);
app.use('/data', lyric.routers.submittedData);
app.use(errorHandler);
const url = `http://127.0.0.1:${await listen(app)}`;
const sql = new pg.Client(db);
await sql.connect();
await fetch(url + '/dictionary/register', { method: 'POST', headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ categoryName: 'clinical', dictionaryName: 'clinic', dictionaryVersion: '1.0', defaultCentricEntity: 'donor' }) });
const add = (n) => sql.query(`insert into submitted_data (data, dictionary_category_id, entity_name, is_valid, organization, original_schema_id, system_id)
  values ($1, 1, 'donor', true, 'A', (select min(id) from dictionaries), $2)`, [{ donor_id: `D${n}` }, `id-${n}`]);
let next = 0;
while (next < 41) await add(next++);
const page = async (n) => {
  const p = await (await fetch(`${url}/data/category/1/organization/A?view=compound&pageSize=40&page=${n}`)).json();
  return { ids: (p.records ?? []).map((r) => r.systemId), total: p.pagination?.totalRecords };
};
await page(1);
const began = Date.now();
await page(1);
const took = Date.now() - began;
let seen = 0;
for (let trial = 0; trial < 40; trial++) {
  const whole = page(1);
  await new Promise((r) => setTimeout(r, (took * trial) / 40));
  const gone = (await sql.query(`delete from submitted_data where id = (select min(id) from submitted_data) returning system_id`)).rows[0].system_id;
  const { ids, total } = await whole;
  const now = (await page(1)).ids; // the 40 records that are left
  const lost = now.filter((id) => !ids.includes(id));
  if (ids.length === 40 && total === 40 && ids.includes(gone) && lost.length === 1) seen++;
  await add(next++);
}
log(seen > 0
  ? `as described: of 40 lists, ${seen} had one page of 40 rows and totalRecords 40, and lacked a record that was there throughout`
  : 'changed: no page had a total of another moment');
process.exit(seen > 0 ? 0 : 1);
JS
PG_PORT=$port node main.mjs
