'use strict';
// The timeline page. A source gives boxes for a stretch of time at a
// resolution; the page keeps a stretch three screens wide and redraws from it
// while the person moves, so that moving never waits for the source.
(() => {
const $ = id => document.getElementById(id);
const NONE = 0xffffffff;
const ROW = 22, GAP = 10, HEAD = 20, AXIS = 20, METER = 34;
let LABEL = 150;

// Colours that people with any kind of colour vision can tell apart (after
// Okabe and Ito); a kind's colour follows from its number.
const KINDS = ['#56b4e9', '#e69f00', '#009e73', '#cc79a7', '#f0e442', '#0072b2', '#d55e00', '#8c8c8c'];
const CAUSES = {flow: '#0072b2', anti: '#d55e00', output: '#cc79a7', ordered: '#8c8c8c', bank: '#f0e442', coupling: '#e69f00',
  ring: '#009e73', transfer: '#56b4e9', barrier: '#444444', semaphore: '#6a3d9a', model: '#b8a1d9', lane: '#bbbbbb', start: '#bbbbbb'};

// ---- sources ----

class Remote {
  async program() { return (await this.get('api/program')).json(); }
  async open(b) { this.b = b; return (await this.get('api/meta?b=' + b)).json(); }
  async section(s) { return (await this.get(`api/section?b=${this.b}&s=${s}`)).json(); }
  async memory() { return (await this.get('api/memory')).json(); }
  async why() { return (await this.get('api/why?b=' + this.b)).json(); }
  async groups() { return (await this.get('api/groups?b=' + this.b)).json(); }
  async counters() { return (await this.get('api/counters?b=' + this.b)).json(); }
  async sum(s, t0, t1, rows) { return (await this.get(`api/sum?b=${this.b}&s=${s}&t0=${t0}&t1=${t1}&rows=${rows}`)).json(); }
  async tiles(s, t0, t1, px) {
    const b = await (await this.get(`api/tiles?b=${this.b}&s=${s}&t0=${t0}&t1=${t1}&px=${px}`)).arrayBuffer();
    const v = new DataView(b);
    const rows = [];
    let at = 4;
    for (let r = v.getUint32(0, true); r > 0; r--) {
      const n = v.getUint32(at, true);
      at += 4;
      const row = newRow(n);
      for (let i = 0; i < n; i++, at += 28) {
        row.t0[i] = v.getFloat64(at, true);
        row.t1[i] = v.getFloat64(at + 8, true);
        row.id[i] = v.getUint32(at + 16, true);
        row.kind[i] = v.getUint16(at + 20, true);
        row.cause[i] = v.getUint8(at + 22);
        row.share[i] = v.getUint8(at + 23);
        row.crit[i] = v.getUint8(at + 24);
      }
      rows.push(row);
    }
    return rows;
  }
  async event(s, id) { return (await this.get(`api/event?b=${this.b}&s=${s}&id=${id}`)).json(); }
  async search(q) { return (await this.get(`api/search?b=${this.b}&q=` + encodeURIComponent(q))).json(); }
  async get(url) {
    const r = await fetch(url);
    if (!r.ok) throw new Error(await r.text());
    return r;
  }
}

function newRow(n) {
  return {n, t0: new Float64Array(n), t1: new Float64Array(n), id: new Uint32Array(n), kind: new Uint16Array(n),
    cause: new Uint8Array(n), share: new Uint8Array(n), crit: new Uint8Array(n)};
}

const pale = (m, kind) => m.quiet && m.quiet[kind] ? 1 : 0;

// Local holds all events itself: the page as one file.
class Local {
  constructor(text) { this.text = text; }
  async program() {
    const raw = Uint8Array.from(atob(this.text), c => c.charCodeAt(0));
    this.text = '';
    const json = await new Response(new Blob([raw]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
    this.all = json;
    return json.program;
  }
  async open(b) {
    const k = this.all.program.held.indexOf(b);
    if (k < 0) throw new Error('this file does not hold the block; perfsim view --block shows it');
    this.data = this.all.pages[k];
    if (!this.data.where) this.prepare(this.data);
    return this.data.meta;
  }
  prepare(d) {
    let id = 0;
    d.ids = Uint32Array.from(d.ids, x => id += x);
    d.where = d.sections.map(() => new Map());
    d.sections.forEach((s, si) => {
      s.rows.forEach((r, ri) => {
        const n = r.s.length, row = newRow(n);
        let t = 0, id = 0;
        for (let i = 0; i < n; i++) {
          row.t0[i] = t += r.s[i];
          row.t1[i] = t + r.d[i];
          row.id[i] = id += r.i[i];
          row.kind[i] = r.k[i];
          row.cause[i] = r.c ? r.c[i] : 0;
          row.share[i] = r.h ? r.h[i] : 255;
          if (row.id[i] !== NONE && !d.where[si].has(row.id[i])) d.where[si].set(row.id[i], [ri, i]);
        }
        for (const i of r.x || []) row.crit[i] = 1;
        s.rows[ri] = row;
      });
    });
    const off = new Uint32Array(d.off.length + 1);
    d.off.forEach((n, i) => { off[i + 1] = off[i] + n; });
    d.first = off;
  }
  at(id) { const d = this.data.ids, k = first(d.length, i => d[i] >= id); return d[k] === id ? k : -1; }
  name(id) { const k = this.at(id); return k < 0 ? '' : this.data.names[this.data.name[k]] || 'I-' + id; }
  async section(s) { return this.data.meta.sections[s]; }
  async memory() { return this.all.memory; }
  async why() { return this.data.occurring; }
  async groups() { return this.data.groups; }
  async counters() { return this.data.counters; }
  async sum(s, t0, t1, rows) {
    const m = this.data.meta, all = m.kinds.map((_, kind) => ({kind, events: 0, time: 0}));
    for (const n of rows) {
      const r = this.data.sections[s].rows[n];
      for (let i = first(r.n, k => r.t1[k] > t0); i < r.n && r.t0[i] < t1; i++) {
        const w = all[r.kind[i]];
        w.events++;
        w.time += (Math.min(r.t1[i], t1) - Math.max(r.t0[i], t0)) * r.share[i] / 255;
      }
    }
    return all.filter(w => w.events).sort((a, b) => pale(m, a.kind) - pale(m, b.kind) || b.time - a.time);
  }
  async tiles(s, t0, t1, px) {
    const grain = Math.max(1, (t1 - t0) / px);
    return this.data.sections[s].rows.map(r => coarse(r, t0, t1, grain));
  }
  async event(s, id) {
    const m = this.data, at = m.where[s].get(id), n = this.at(id);
    if (!at || n < 0) throw new Error('no such event');
    const [ri, i] = at, row = m.sections[s].rows[ri];
    const e = {id, row: ri, name: this.name(id), start: row.t0[i], end: row.t1[i], preds: [], succs: [], source: m.sources[m.source[n]] || '',
      facts: [{name: 'opcode', value: m.meta.kinds[row.kind[i]]}]};
    const scope = m.scopes[m.scope[n]];
    if (scope && scope !== e.source) e.facts.push({name: 'scope', value: scope});
    if (row.cause[i]) e.facts.push({name: 'held by', value: m.meta.causes[row.cause[i] - 1]});
    if (row.crit[i]) e.facts.push({name: 'critical path', value: 'yes'});
    const link = (p, kind) => {
      const w = m.where[s].get(p);
      if (!w) return null;
      const r = m.sections[s].rows[w[0]];
      return {id: p, row: w[0], name: this.name(p), start: r.t0[w[1]], end: r.t1[w[1]], kind, gap: 0, binds: false};
    };
    for (let k = m.first[n]; k < m.first[n + 1]; k++) {
      const l = link(id - m.back[k], m.edgeKinds[m.kind[k]]);
      if (l) { l.gap = e.start - l.end; e.preds.push(l); }
    }
    if (!m.succ) {
      m.succ = new Map();
      for (let c = 0; c < m.ids.length; c++)
        for (let k = m.first[c]; k < m.first[c + 1]; k++) {
          const p = m.ids[c] - m.back[k];
          if (!m.succ.has(p)) m.succ.set(p, []);
          m.succ.get(p).push([m.ids[c], m.kind[k]]);
        }
    }
    for (const [c, kind] of m.succ.get(id) || []) {
      const l = link(c, m.edgeKinds[kind]);
      if (l) { l.gap = l.start - e.end; e.succs.push(l); }
    }
    e.others = [];
    m.where.forEach((at, o) => {
      const w = o !== s && at.get(id), r = w && m.sections[o].rows[w[0]];
      if (w) e.others.push({section: o, start: r.t0[w[1]], end: r.t1[w[1]]});
    });
    return e;
  }
  async search(q) {
    const m = this.data, path = q.startsWith('scope:') ? q.slice(6) : null;
    q = q.toLowerCase();
    const hits = [];
    for (let n = 0; n < m.ids.length && hits.length < 200; n++) {
      const id = m.ids[n], at = m.where[0].get(id);
      if (!at) continue;
      const r = m.sections[0].rows[at[0]], i = at[1], kind = m.meta.kinds[r.kind[i]], scope = m.scopes[m.scope[n]] || kind, name = this.name(id);
      if (path !== null ? scope === path || scope.startsWith(path + '/') : (name + ' ' + kind + ' ' + scope).toLowerCase().includes(q))
        hits.push({section: 0, row: at[0], id, name, start: r.t0[i], end: r.t1[i]});
    }
    return hits;
  }
}

// coarse draws events shorter than grain together, as the server does.
function coarse(r, t0, t1, grain) {
  let i = first(r.n, k => r.t1[k] > t0);
  const out = [];
  while (i < r.n && r.t0[i] <= t1) {
    let j = i + 1;
    if (r.t1[i] - r.t0[i] < grain) {
      const edge = r.t0[i] + grain;
      while (j < r.n && r.t0[j] < edge && r.t1[j] - r.t0[j] < grain) j++;
    }
    out.push([i, j]);
    i = j;
  }
  const row = newRow(out.length);
  out.forEach(([a, b], k) => {
    row.t0[k] = r.t0[a];
    row.t1[k] = r.t1[b - 1];
    row.id[k] = b - a > 1 ? NONE : r.id[a];
    row.kind[k] = r.kind[a];
    row.cause[k] = r.cause[a];
    row.share[k] = r.share[a];
    if (b - a > 1) {
      let busy = 0;
      for (let x = a; x < b; x++) { busy += (r.t1[x] - r.t0[x]) * r.share[x] / 255; row.crit[k] |= r.crit[x]; }
      row.share[k] = Math.min(255, 255 * busy / Math.max(1, row.t1[k] - row.t0[k]));
    } else row.crit[k] = r.crit[a];
  });
  return row;
}

function first(n, test) {
  let lo = 0, hi = n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (test(mid)) hi = mid; else lo = mid + 1;
  }
  return lo;
}

// ---- state ----

let src, prog, meta, view, map, g, mg;
let blk = 0;                   // the block shown
let T0 = 0, T1 = 1;            // the time shown, ns
let span = 1;
let scroll = 0;                // px
let shown = [], usual = [];    // sections that are shown now, and at first
let tiles = [];                // per section: {t0, t1, px, rows}
let counters = [];             // below the lanes
let noCounters = '';           // why there are none
let groups = null;             // operators, once they were asked for
let occurring = [];            // causes that events have
let sel = null;                // the selected event with its section
let area = null;               // {s, rows, t0, t1, sums}, the area selected
let tab = 'opcodes';           // what is below the lanes
let marks = true;              // critical path
let unfolded = new Set();      // "section:row" whose parts are shown
let hidden = new Set();        // names of lanes that are hidden
let sorting = 'order';         // of lanes: order, busy, name
let selecting = false;         // dragging selects an area
let past = [];                 // stretches of time to go back to
let loading = false, stale = false, frame = 0;
let hover = null;
const frames = [];             // when the last frames were drawn
window.perfsim = {frames, get state() { return {T0, T1, sel, loading, blk, tab, area, counters: counters.length, occurring, shown, drawn: layout().rows.length}; }};

const css = n => getComputedStyle(document.documentElement).getPropertyValue(n).trim();
let colors = {};
function readColors() {
  colors = {bg: css('--bg'), fg: css('--fg'), soft: css('--soft'), line: css('--line'), band: css('--band'), accent: css('--accent'), crit: css('--crit')};
}

// dur writes a duration as perfsim's commands do.
function dur(ns) {
  const sign = ns < 0 ? '-' : '', a = Math.abs(ns);
  if (a < 1e4) return sign + Math.round(a).toLocaleString('en') + ' ns';
  const u = [1e3, 1e6, 1e9].find(u => a / u < 999.995) || 1e9, v = a / u, name = u === 1e3 ? 'µs' : u === 1e6 ? 'ms' : 's';
  if (v >= 999.995) return sign + Math.round(v).toLocaleString('en') + ' ' + name;
  return sign + fixed(v, v < 9.9995 ? 3 : 2) + ' ' + name;
}

// fixed is toFixed that rounds exact ties to even, as Go does.
function fixed(v, digits) {
  const p = 10 ** digits, s = v * p;
  if (Number.isInteger(v * 16) && s % 1 === .5 && Math.floor(s) % 2 === 0) return (Math.floor(s) / p).toFixed(digits);
  return v.toFixed(digits);
}

// time writes a moment, precisely.
function time(ns) {
  const a = Math.abs(ns);
  if (a < 1e3) return ns.toFixed(a < 10 && ns % 1 ? 1 : 0) + ' ns';
  if (a < 1e6) return (ns / 1e3).toFixed(a < 1e4 ? 3 : 2) + ' µs';
  if (a < 1e9) return (ns / 1e6).toFixed(3) + ' ms';
  return (ns / 1e9).toFixed(3) + ' s';
}

// ---- layout: where rows are ----

// lanesOf returns the rows of a section as they are shown, each with its parts
// behind it where it is unfolded.
function lanesOf(s) {
  const rows = meta.sections[s].rows, out = [];
  let main = rows.map((r, i) => i).filter(i => !rows[i].parent && !hidden.has(rows[i].name));
  if (sorting === 'busy') main.sort((a, b) => rows[b].busy - rows[a].busy || a - b);
  if (sorting === 'name') main.sort((a, b) => rows[a].name.localeCompare(rows[b].name, 'en', {numeric: true}) || a - b);
  for (const i of main) {
    out.push(i);
    if (unfolded.has(s + ':' + i)) rows.forEach((r, k) => { if (r.parent === i + 1) out.push(k); });
  }
  return out;
}

function layout() {
  const rows = [];
  let y = AXIS - scroll;
  if (!meta) return {rows, height: 0};
  for (const s of shown) {
    rows.push({s, y, h: HEAD, head: true});
    y += HEAD;
    for (const r of lanesOf(s)) { rows.push({s, r, y, h: ROW}); y += ROW; }
    y += GAP;
  }
  counters.forEach((c, k) => { if (!hidden.has(c.name)) { rows.push({c: k, y, h: METER}); y += METER; } });
  return {rows, height: y + scroll};
}

const lane = row => !row.head && row.c === undefined;

const x = t => LABEL + (t - T0) / (T1 - T0) * (view.clientWidth - LABEL);
const at = px => T0 + (px - LABEL) / (view.clientWidth - LABEL) * (T1 - T0);

// ---- drawing ----

function draw() {
  frame = 0;
  const now = performance.now();
  frames.push(now);
  if (frames.length > 240) frames.shift();
  const w = view.clientWidth, h = view.clientHeight, d = devicePixelRatio || 1;
  const phone = w < 520;
  LABEL = phone ? 124 : 150;
  if (view.width !== Math.round(w * d) || view.height !== Math.round(h * d)) {
    view.width = Math.round(w * d);
    view.height = Math.round(h * d);
  }
  g.setTransform(d, 0, 0, d, 0, 0);
  g.fillStyle = colors.bg;
  g.fillRect(0, 0, w, h);
  g.font = '11px system-ui, sans-serif';
  g.textBaseline = 'middle';
  const rows = layout().rows.filter(r => r.y <= h && r.y + r.h >= 0);
  const scale = (w - LABEL) / (T1 - T0);
  rows.forEach((row, n) => {
    row.band = lane(row) && n % 2 ? colors.band : colors.bg;
    if (row.head) {
      g.fillStyle = colors.soft;
      g.fillText(meta.sections[row.s].name + '  ·  ' + dur(meta.sections[row.s].span), 8, row.y + HEAD / 2);
    } else if (row.band !== colors.bg) {
      g.fillStyle = row.band;
      g.fillRect(0, row.y, w, ROW);
    }
  });
  grid();
  for (const row of rows) {
    if (row.c !== undefined) { drawCounter(counters[row.c], row.y, w); continue; }
    if (row.head) continue;
    const r = meta.sections[row.s].rows[row.r];
    if (r.loops) drawLoops(r.loops, row.y + 3, ROW - 6, w, scale);
    const tile = tiles[row.s];
    if (tile && tile.rows[row.r]) drawRow(tile.rows[row.r], row.y + 3, ROW - 6, w, scale);
    if (r.loops) nameLoops(r.loops, row.y + 3, ROW - 6, w, scale);
  }
  drawLinks(rows);
  drawArea(rows);
  // Labels last, so that boxes slide under them.
  for (const row of rows) {
    if (row.head) continue;
    g.fillStyle = row.band;
    g.fillRect(0, row.y, LABEL - 2, row.h);
    if (row.c !== undefined) {
      const c = counters[row.c];
      g.fillStyle = colors.fg;
      g.fillText(middle(c.name, LABEL - 14), 8, row.y + 11);
      g.fillStyle = colors.soft;
      g.fillText(middle('max ' + amount(c.top, c.unit), LABEL - 14), 8, row.y + 24);
      continue;
    }
    const r = meta.sections[row.s].rows[row.r], parts = hasParts(row.s, row.r);
    g.fillStyle = r.parent ? colors.soft : colors.fg;
    const indent = r.parent ? 20 : 8 + (parts ? 10 : 0);
    if (parts) g.fillText(unfolded.has(row.s + ':' + row.r) ? '▾' : '▸', 6, row.y + ROW / 2);
    g.fillText(middle(r.name, LABEL - (phone ? 36 : 46) - indent), indent, row.y + ROW / 2);
    g.fillStyle = colors.soft;
    g.textAlign = 'right';
    g.fillText((100 * r.busy / Math.max(1, meta.sections[row.s].span)).toFixed(phone ? 0 : 1) + ' %', LABEL - 8, row.y + ROW / 2);
    g.textAlign = 'left';
  }
  axis(w);
  drawMap();
  $('status').textContent = (loading ? 'loading … ' : '') + time(T0) + ' to ' + time(T1) + '  (' + dur(T1 - T0) + ')';
  tip();
}

function hasParts(s, r) { return meta.sections[s].rows.some(q => q.parent === r + 1); }

function amount(v, unit) {
  if (unit === 'B/ns') return v.toFixed(v < 10 ? 2 : 0) + ' GB/s';
  if (unit === 'bytes per partition') unit = 'B';
  return v.toLocaleString('en', {maximumFractionDigits: 2}) + ' ' + unit;
}

// drawCounter draws a value over time as a filled step line.
function drawCounter(c, y, w) {
  const base = y + METER - 3, top = Math.max(c.top, 1e-9), n = c.time.length;
  g.fillStyle = tint('#0072b2', 7);
  g.beginPath();
  g.moveTo(LABEL, base);
  let k = Math.max(0, first(n, i => c.time[i] > T0) - 1), last = base;
  for (; k < n; k++) {
    const px = Math.max(LABEL, x(c.time[k]));
    if (px > w) break;
    g.lineTo(px, last);
    last = base - (METER - 7) * Math.min(1, c.value[k] / top);
    g.lineTo(px, last);
  }
  const end = Math.max(LABEL, Math.min(w, x(span)));
  g.lineTo(end, last);
  g.lineTo(end, base);
  g.fill();
}

// A loop is drawn over the time of all its iterations, filled as high as the
// lane is busy in them. Its last iteration has single events, which lie over it.
const loopColor = l => KINDS[meta.colors[l[5]] % KINDS.length];
function drawLoops(loops, y, h, w, scale) {
  let last = -1;
  for (const l of loops) {
    const x0 = Math.max(LABEL, LABEL + (l[1] - T0) * scale), x1 = Math.min(w, LABEL + (l[3] - T0) * scale);
    if (x1 < LABEL || x0 > w || x1 - x0 < 1 && Math.floor(x0) === last) continue;
    last = Math.floor(x0);
    const wide = Math.max(1, x1 - x0), full = Math.min(1, l[4] / Math.max(1, l[3] - l[1])), c = loopColor(l);
    g.fillStyle = tint(c, 2);
    g.fillRect(x0, y, wide, h);
    g.fillStyle = tint(c, 9);
    g.fillRect(x0, y + h * (1 - full), wide, h * full);
    if (wide > 3) {
      g.fillStyle = colors.bg;
      g.fillRect(x0 + wide - .5, y, .5, h);
    }
  }
}

// nameLoops labels what no single events cover.
function nameLoops(loops, y, h, w, scale) {
  for (let k = 0; k < loops.length; k++) {
    const l = loops[k];
    let b = l[2]; // up to the last iteration
    const x0 = Math.max(LABEL, LABEL + (l[1] - T0) * scale), x1 = Math.min(w, LABEL + (b - T0) * scale);
    if (x1 - x0 < 40) continue;
    const info = meta.loops[l[0]], share = Math.round(100 * l[4] / Math.max(1, l[3] - l[1])) + ' %';
    const s = [info.name + ' ×' + info.trips.toLocaleString('en') + '  ' + share, '×' + info.trips.toLocaleString('en') + '  ' + share, share]
      .find(t => g.measureText(t).width < x1 - x0 - 8);
    if (!s) continue;
    const tw = g.measureText(s).width;
    g.fillStyle = colors.bg;
    g.globalAlpha = .75;
    g.fillRect(x0 + 2, y + 2, tw + 4, h - 4);
    g.globalAlpha = 1;
    g.fillStyle = colors.fg;
    g.fillText(s, x0 + 4, y + h / 2);
  }
}

function drawArea(rows) {
  if (!area) return;
  const own = rows.filter(r => lane(r) && r.s === area.s && area.rows.includes(r.r));
  if (!own.length) return;
  const a = Math.max(LABEL, x(area.t0)), b = x(area.t1);
  if (b < LABEL) return;
  const y = own[0].y, h = own[own.length - 1].y + ROW - y;
  g.fillStyle = colors.accent;
  g.globalAlpha = .15;
  g.fillRect(a, y, b - a, h);
  g.globalAlpha = 1;
  g.strokeStyle = colors.accent;
  g.lineWidth = 1.5;
  g.strokeRect(a, y, b - a, h);
}

// clip cuts a text to a width; to nothing where what is left would say
// nothing: less than ten letters and 60 % of it.
const widths = new Map();
function clip(text, px) {
  const key = text + '\n' + Math.floor(px);
  let t = widths.get(key);
  if (t === undefined) {
    t = text;
    while (t.length > 1 && g.measureText(t + (t === text ? '' : '…')).width > px) t = t.slice(0, -1);
    if (t !== text) t = t.length < Math.min(10, text.length * .6) ? '' : t + '…';
    if (widths.size > 5000) widths.clear();
    widths.set(key, t);
  }
  return t;
}

// middle cuts a name in its middle: names of lanes and queues differ at their
// ends.
function middle(text, px) {
  const key = text + '\r' + Math.floor(px);
  let t = widths.get(key);
  if (t === undefined) {
    t = text;
    for (let n = text.length - 1; n > 3 && g.measureText(t).width > px; n--) t = text.slice(0, Math.ceil(n / 2)) + '…' + text.slice(text.length - Math.floor(n / 2));
    widths.set(key, t);
  }
  return t;
}

// tint is a colour laid on the background with sixteenths of its strength.
// Opaque colours draw faster than transparent ones.
const tints = new Map();
function tint(color, sixteenths) {
  const key = color + sixteenths + colors.bg;
  let t = tints.get(key);
  if (!t) {
    const part = (c, i) => parseInt(c.slice(1 + 2 * i, 3 + 2 * i), 16);
    t = 'rgb(' + [0, 1, 2].map(i => Math.round((part(color, i) * sixteenths + part(colors.bg, i) * (16 - sixteenths)) / 16)).join() + ')';
    tints.set(key, t);
  }
  return t;
}

function drawRow(r, y, h, w, scale) {
  let color = '', lastPx = -1;
  const set = c => { if (c !== color) { g.fillStyle = c; color = c; } };
  // Boxes of one colour that touch are one rectangle: seen from afar a lane has
  // hundreds. The same for marks of the critical path.
  let run = '', r0 = 0, r1 = 0, c0 = -1, c1 = -1;
  const flush = () => { if (run) { set(run); g.fillRect(r0, y, r1 - r0, h); run = ''; } };
  const mark = () => { if (c0 >= 0) { set(colors.crit); g.fillRect(c0, y - 3, c1 - c0, 3); c0 = -1; } };
  let prev = NaN;
  const from = first(r.n, k => r.t1[k] >= T0);
  for (let i = Math.max(0, from - 1); i < r.n; i++) {
    const a = LABEL + (r.t0[i] - T0) * scale, b = LABEL + (r.t1[i] - T0) * scale;
    // The idle time before, in the colour of its cause.
    if (r.cause[i] && r.id[i] !== NONE && prev < a - 2 && a > LABEL) {
      const c = CAUSES[meta.causes[r.cause[i] - 1]];
      if (c) {
        set(tint(c, 7));
        const p = Math.max(LABEL, prev);
        g.fillRect(p, y + h - 4, Math.min(a, w) - p, 4);
      }
    }
    prev = b;
    if (b < LABEL) continue;
    if (a > w) break;
    const x0 = Math.max(a, LABEL), wide = Math.max(Math.min(b, w) - x0, 1);
    if (wide <= 1 && Math.floor(x0) === lastPx) continue;
    lastPx = wide <= 1 ? Math.floor(x0) : -1;
    const own = KINDS[meta.colors[r.kind[i]] % KINDS.length];
    const fill = r.id[i] === NONE ? tint(own, 5 + (r.share[i] >> 5)) : meta.quiet && meta.quiet[r.kind[i]] ? tint(own, 5) : own;
    if (run !== fill || x0 > r1 + .3) {
      flush();
      run = fill;
      r0 = x0;
    }
    r1 = x0 + wide;
    if (wide > 3 && r.id[i] !== NONE) {
      r1 -= .5; // a line between events
      flush();
    }
    if (marks && r.crit[i]) {
      if (c0 < 0 || x0 > c1 + .3) {
        mark();
        c0 = x0;
      }
      c1 = x0 + wide;
    }
    if (wide > 34 && r.id[i] !== NONE) {
      const name = clip(meta.kinds[r.kind[i]] || '', wide - 8);
      set(meta.quiet && meta.quiet[r.kind[i]] ? colors.soft : own === '#0072b2' ? '#fff' : '#111');
      if (name) g.fillText(name, x0 + 4, y + h / 2);
    }
  }
  flush();
  mark();
}
const names = new Map();

function drawLinks(rows) {
  if (!sel) return;
  const pos = (s, r) => rows.find(q => q.s === s && q.r === r && lane(q));
  const own = pos(sel.s, sel.row);
  if (!own) return;
  const a = Math.max(x(sel.start), LABEL), b = Math.max(x(sel.end), a + 2);
  g.save();
  g.beginPath();
  g.rect(LABEL, AXIS, view.clientWidth, view.clientHeight);
  g.clip();
  g.strokeStyle = colors.fg;
  g.lineWidth = 2;
  g.strokeRect(a - 1, own.y + 2, b - a + 2, ROW - 4);
  // The same event in the other runs shown.
  g.setLineDash([3, 2]);
  for (const o of sel.others || []) {
    const q = pos(o.section, sel.row), c = x(o.start), d = x(o.end);
    if (q && d > LABEL) g.strokeRect(c - 1, q.y + 2, Math.max(d - c, 2) + 2, ROW - 4);
  }
  g.setLineDash([]);
  const curve = (x0, y0, x1, y1, kind, binds) => {
    let lift = 0;
    if (y0 === y1) { // on its own lane, over the boxes and not through their names
      y0 -= ROW / 2 - 4;
      y1 = y0;
      lift = 12;
    }
    g.strokeStyle = CAUSES[kind.toLowerCase()] || colors.soft;
    g.lineWidth = binds ? 2.5 : 1.2;
    g.beginPath();
    g.moveTo(x0, y0);
    const m = Math.max(12, Math.abs(x1 - x0) / 2);
    g.bezierCurveTo(x0 + m, y0 - lift, x1 - m, y1 - lift, x1, y1);
    g.stroke();
  };
  for (const p of sel.preds) {
    const q = pos(sel.s, p.row);
    if (q) curve(x(p.end), q.y + ROW / 2, a, own.y + ROW / 2, p.kind, p.binds);
  }
  for (const p of sel.succs) {
    const q = pos(sel.s, p.row);
    if (q) curve(x(sel.end), own.y + ROW / 2, x(p.start), q.y + ROW / 2, p.kind, p.binds);
  }
  g.restore();
}

function step(width) {
  const raw = width / Math.max(3, (view.clientWidth - LABEL) / 130), p = Math.pow(10, Math.floor(Math.log10(raw)));
  return [1, 2, 5, 10].map(m => m * p).find(m => m >= raw) || 10 * p;
}

// tick is a label of the axis: the unit that suits the largest time shown, with
// the digits in which neighbours differ.
function tick(t) {
  const st = step(T1 - T0), most = Math.max(Math.abs(T0), Math.abs(T1), st);
  const [unit, name] = most < 1e3 ? [1, 'ns'] : most < 1e6 ? [1e3, 'µs'] : most < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  const digits = Math.min(9, Math.max(0, -Math.floor(Math.log10(st / unit) + 1e-9)));
  const v = (t / unit).toFixed(digits);
  return (v.replace(/^-(0(\.0*)?)$/, '$1')) + ' ' + name;
}

function ticks(each) {
  const st = step(T1 - T0);
  for (let t = Math.ceil(T0 / st) * st; t < T1; t += st) each(t, Math.round(x(t)) + .5);
}

// grid draws the lines of the axis, which lie under the boxes.
function grid() {
  g.strokeStyle = colors.line;
  g.lineWidth = 1;
  g.beginPath();
  ticks((t, px) => { g.moveTo(px, AXIS); g.lineTo(px, view.clientHeight); });
  g.stroke();
}

function axis(w) {
  g.fillStyle = colors.bg;
  g.fillRect(0, 0, w, AXIS);
  g.fillStyle = colors.soft;
  ticks((t, px) => {
    const s = tick(t);
    if (px + 3 + g.measureText(s).width <= w) g.fillText(s, px + 3, AXIS / 2);
  });
}

// overview is the picture of the whole time, drawn again only when it changes:
// thousands of cells are too many for every frame.
let whole = null, wholeKey = '';
function overview(pw, ph, w, h, d) {
  const key = [pw, ph, blk, shown[0], colors.band, LABEL].join();
  if (key === wholeKey) return whole;
  wholeKey = key;
  whole = document.createElement('canvas');
  whole.width = pw;
  whole.height = ph;
  const c = whole.getContext('2d', {alpha: false});
  c.setTransform(d, 0, 0, d, 0, 0);
  c.fillStyle = colors.band;
  c.fillRect(0, 0, w, h);
  const s = meta.sections[shown[0]];
  if (s) {
    const rows = s.rows.filter(r => !r.parent && r.load.length), rh = (h - 4) / Math.max(1, rows.length);
    rows.forEach((r, i) => {
      const n = r.load.length, cell = (w - LABEL) * (s.span / span) / n;
      c.fillStyle = KINDS[i % KINDS.length];
      for (let k = 0; k < n; k++) {
        if (!r.load[k]) continue;
        c.globalAlpha = .2 + .8 * r.load[k] / 255;
        c.fillRect(LABEL + k * cell, 2 + i * rh, cell + .5, Math.max(1, rh - .5));
      }
    });
    c.globalAlpha = 1;
  }
  return whole;
}

function drawMap() {
  const w = map.clientWidth, h = 44, d = devicePixelRatio || 1;
  if (map.width !== Math.round(w * d)) { map.width = Math.round(w * d); map.height = h * d; }
  mg.setTransform(1, 0, 0, 1, 0, 0);
  mg.drawImage(overview(map.width, map.height, w, h, d), 0, 0);
  mg.setTransform(d, 0, 0, d, 0, 0);
  const a = LABEL + T0 / span * (w - LABEL), b = LABEL + T1 / span * (w - LABEL);
  mg.fillStyle = colors.bg;
  mg.globalAlpha = .55;
  mg.fillRect(LABEL, 0, Math.max(0, a - LABEL), h);
  mg.fillRect(b, 0, w - b, h);
  mg.globalAlpha = 1;
  mg.strokeStyle = colors.accent;
  mg.lineWidth = 1.5;
  mg.strokeRect(a, 1, Math.max(2, b - a), h - 2);
  mg.fillStyle = colors.soft;
  mg.font = '11px system-ui, sans-serif';
  mg.textBaseline = 'middle';
  mg.fillText('overview', 8, h / 2);
}

function redraw() { if (meta && !frame) frame = requestAnimationFrame(draw); }

// ---- loading tiles ----

function need() {
  const width = T1 - T0, px = view.clientWidth - LABEL;
  return shown.some(s => {
    const t = tiles[s];
    return !t || t.t0 > Math.max(0, T0) || t.t1 < Math.min(span, T1) || width / px * 1.4 < t.grain || width / px > t.grain * 4;
  });
}

async function load() {
  if (loading) { stale = true; return; }
  if (!need()) return;
  loading = true;
  redraw();
  const width = T1 - T0, a = Math.max(0, T0 - width), b = Math.min(span, T1 + width), px = Math.max(64, view.clientWidth - LABEL), of = blk;
  const n = Math.min(16000, Math.max(64, Math.round(px / 2 * (b - a) / width)));
  try {
    await Promise.all(shown.map(async s => {
      const rows = await src.tiles(s, a, Math.max(b, a + 1), n);
      if (of === blk) tiles[s] = {t0: a, t1: b, grain: width / px, rows};
    }));
    $('status').classList.remove('bad');
  } catch (e) {
    $('status').textContent = 'perfsim no longer answers: ' + e.message;
    loading = false;
    return;
  }
  loading = false;
  redraw();
  if (stale) { stale = false; load(); }
}

function show(a, b) {
  const least = 20;
  let w = Math.max(least, Math.min(b - a, span * 1.02));
  a = Math.max(-span * .01, Math.min(a, span * 1.01 - w));
  T0 = a;
  T1 = a + w;
  redraw();
  load();
  clearTimeout(show.later);
  show.later = setTimeout(link, 250);
}

// jump shows a stretch of time and remembers where it came from.
function jump(a, b) {
  past.push([T0, T1]);
  if (past.length > 50) past.shift();
  show(a, b);
}

const all = () => show(-span * .01, span * 1.01);

function zoom(f, t) {
  const w = (T1 - T0) * f;
  show(t - (t - T0) * f, t - (t - T0) * f + w);
}

function link() {
  const p = new URLSearchParams();
  if (prog.blocks.length > 1) p.set('b', blk);
  p.set('t0', Math.round(T0));
  p.set('t1', Math.round(T1));
  if (sel) p.set('sel', sel.s + ':' + sel.id);
  if (shown.join() !== usual.join()) p.set('show', shown.join(','));
  history.replaceState(null, '', '#' + p);
}

// ---- selecting ----

const rowAt = py => layout().rows.find(r => py >= r.y && py < r.y + r.h);

// hit finds what is drawn at a point: an event, or the loop behind it.
function hit(px, py) {
  if (px < LABEL) return null;
  const row = rowAt(py);
  if (!row || !lane(row)) return null;
  const t = at(px), slop = 2 * (T1 - T0) / view.clientWidth, tile = tiles[row.s];
  const r = tile && tile.rows[row.r];
  if (r)
    for (let i = Math.max(0, first(r.n, k => r.t1[k] >= t - slop) - 1); i < r.n && r.t0[i] <= t + slop; i++)
      if (r.t1[i] >= t - slop) return {s: row.s, row: row.r, i, r};
  const loops = (meta.sections[row.s].rows[row.r].loops || []).filter(l => t >= l[1] && t <= l[3]);
  return loops.length ? {s: row.s, row: row.r, loop: loops[loops.length - 1]} : null;
}

async function select(s, id, move) {
  let e;
  try { e = await src.event(s, id); } catch (err) { $('status').textContent = err.message; return; }
  e.s = s;
  sel = e;
  names.set(e.id, e.name);
  for (const l of e.preds.concat(e.succs)) names.set(l.id, l.name);
  if (move && (e.end < T0 || e.start > T1)) {
    const w = T1 - T0;
    show((e.start + e.end) / 2 - w / 2, (e.start + e.end) / 2 + w / 2);
  }
  if (!shown.includes(s)) await toggle(s);
  hidden.delete(meta.sections[s].rows[e.row].name);
  const row = layout().rows.find(r => lane(r) && r.s === s && r.r === e.row);
  if (row && (row.y < AXIS || row.y > view.clientHeight - ROW)) scroll = Math.max(0, row.y + scroll - view.clientHeight / 2);
  open('event');
  say(kindOf(e) + ' ' + e.name + ' on ' + meta.sections[s].rows[e.row].name + ', ' + meta.sections[s].name + ', starts at ' + time(e.start) +
    ', takes ' + dur(e.end - e.start) + ', waits for ' + e.preds.length + ', ' + e.succs.length + ' wait for it');
  link();
  redraw();
}

const kindOf = e => { const f = e.facts.find(f => f.name === 'opcode'); return f ? f.value : ''; };

// say tells screen readers.
function say(s) { $('say').textContent = s; }

function deselect() {
  sel = null;
  area = null;
  if (tab === 'event' || tab === 'area') open('opcodes'); else open(tab);
  link();
  redraw();
}

// noParts drops the parts of lanes that are among the rows themselves: their
// events would count twice.
function noParts(s, rows) {
  const all = meta.sections[s].rows;
  return rows.filter(r => !all[r].parent || !rows.includes(all[r].parent - 1));
}

async function selectArea(s, rows, t0, t1) {
  area = {s, rows, t0: Math.max(0, Math.min(t0, t1)), t1: Math.max(t0, t1), sums: null};
  open('area');
  redraw();
  const mine = area;
  try { mine.sums = await src.sum(s, mine.t0, mine.t1, rows); } catch (e) { $('status').textContent = e.message; return; }
  if (area !== mine) return;
  open('area');
  say(rows.length + ' lanes, ' + dur(mine.t1 - mine.t0) + ': ' + mine.sums.slice(0, 5).map(w => meta.kinds[w.kind] + ' ' + w.events + ' times, ' + dur(w.time)).join('; '));
}

// ---- what is below the lanes ----

function text(tag, s, cls) {
  const e = document.createElement(tag);
  e.textContent = s;
  if (cls) e.className = cls;
  return e;
}

function tabs() {
  const box = $('tabs');
  box.textContent = '';
  const list = [['opcodes', 'opcodes'], ['operators', 'operators']];
  list.push(['memory', 'memory']);
  if (prog.blocks.length > 1) list.push(['blocks', prog.blocks.length + ' blocks']);
  if (sel) list.push(['event', sel.name]);
  if (area) list.push(['area', 'area']);
  for (const [id, name] of list) {
    const b = text('button', name);
    b.setAttribute('role', 'tab');
    b.id = 'tab-' + id;
    b.setAttribute('aria-selected', tab === id);
    b.onclick = () => open(id);
    box.append(b);
  }
}

function open(id) {
  tab = id;
  tabs();
  const box = $('detail');
  box.textContent = '';
  ({opcodes: key, operators: operators, blocks: blocks, memory: memory, event: () => detail(sel), area: areaTable})[id](box);
}

const swatch = kind => {
  const i = document.createElement('i'), own = KINDS[meta.colors[kind] % KINDS.length];
  i.style.background = meta.quiet && meta.quiet[kind] ? tint(own, 5) : own;
  return i;
};

function kindList(list, label) {
  const ul = document.createElement('ul');
  ul.className = 'key';
  ul.setAttribute('aria-label', label);
  for (const w of list) {
    const li = text('li', ''), name = text('b', meta.kinds[w.kind]);
    name.title = meta.kinds[w.kind];
    li.append(swatch(w.kind), name, text('span', w.events.toLocaleString('en') + ' ×'), text('span', dur(w.time)));
    ul.append(li);
  }
  return ul;
}

// key lists the colours of the opcodes, how many events of each there are and
// how long they take.
function key() {
  const box = $('detail');
  const hint = 'Click an event; drag with Shift to add an area up; ? lists the keys. ' + (meta.loops && meta.loops.length ?
    'Executions and busy time of one run of the block, with all iterations of loops.' : 'Times are as drawn: an event ends where the next on its lane starts.');
  box.append(text('p', hint, 'hint'));
  if (meta.work && meta.work.length) box.append(kindList(meta.work, 'colours of ' + meta.sections[0].name));
}

function areaTable(box) {
  const rows = area.rows.map(r => meta.sections[area.s].rows[r].name);
  box.append(text('p', time(area.t0) + ' to ' + time(area.t1) + ' (' + dur(area.t1 - area.t0) + ') on ' + (rows.length > 4 ? rows.length + ' lanes' : rows.join(', ')) +
    (area.sums ? area.sums.length ? '; events cut at the edges:' : ': no events' : ' …'), 'hint'));
  if (prog.sampled) box.append(text('p', 'This file is sampled: events drawn together count as one, of the opcode of the first.', 'hint'));
  if (area.sums) box.append(kindList(area.sums, 'events of the area'));
  const loops = new Map();
  for (const r of area.rows)
    for (const l of meta.sections[area.s].rows[r].loops || []) {
      const t = Math.min(l[2], area.t1) - Math.max(l[1], area.t0);
      if (t > 0 && l[6] === 0) loops.set(l[0], (loops.get(l[0]) || 0) + t * Math.min(1, l[4] / Math.max(1, l[3] - l[1])));
    }
  if (loops.size) {
    const ul = document.createElement('ul');
    ul.className = 'key';
    for (const [n, t] of [...loops].sort((a, b) => b[1] - a[1]).slice(0, 40)) {
      const li = text('li', '');
      li.append(text('i', ''), text('b', meta.loops[n].name), text('span', 'earlier iterations'), text('span', dur(t)));
      ul.append(li);
    }
    box.append(ul);
  }
}

// short writes a number with three digits and a prefix.
function short(v) {
  let k = 0;
  for (; v >= 999.5 && k < 6; k++) v /= 1000;
  return v.toPrecision(3).replace(/\.?0+$/, m => m.startsWith('.') ? '' : m) + ' ' + ['', 'k', 'M', 'G', 'T', 'P', 'E'][k];
}

const total = gr => gr.busy.reduce((a, b) => a + b, 0);
const CLASS = ['#56b4e9', '#009e73', '#cc79a7', '#f0e442', '#8c8c8c', '#e69f00', '#0072b2', '#bbbbbb'];

// operators lists the scopes of the block as a tree, most busy time first.
async function operators(box) {
  if (!groups) {
    box.append(text('p', 'adding up …', 'hint'));
    const of = blk;
    let list;
    try { list = await src.groups(); } catch (e) { $('status').textContent = e.message; return; }
    if (of !== blk) return;
    groups = list;
    if (tab !== 'operators') return;
    box.textContent = '';
  }
  const most = Math.max(1, ...groups.filter(q => q.parent < 0).map(total));
  const used = meta.classes.map((c, k) => groups.some(q => q.busy[k] > 0));
  const legend = text('p', 'Bars: busy time of one run of the block, by engine:', 'hint');
  meta.classes.forEach((c, k) => {
    if (!used[k]) return;
    const i = document.createElement('i'), sp = text('span', c);
    i.style.background = CLASS[k];
    sp.prepend(i);
    legend.append(sp);
  });
  box.append(legend);
  const children = new Map();
  groups.forEach((q, n) => { if (!children.has(q.parent)) children.set(q.parent, []); children.get(q.parent).push(n); });
  for (const list of children.values()) list.sort((a, b) => groups[b].on_path - groups[a].on_path || total(groups[b]) - total(groups[a]) || a - b);
  const tree = document.createElement('div'), top = document.createElement('div');
  tree.className = 'tree';
  top.className = 'row head';
  for (const [c, cls] of [['operator or scope', ''], ['busy', ''], ['on the critical path', 'time'], ['bound', 'more'], ['FLOPs', 'more'], ['HBM bytes', 'more'], ['executions', 'count']]) top.append(text('span', c, cls));
  tree.append(top);
  const add = (n, depth, before) => {
    const q = groups[n], row = document.createElement('div'), kids = children.get(n) || [];
    row.className = 'row';
    const name = text('button', (kids.length ? '▸ ' : '   ') + q.name, 'name');
    name.style.paddingLeft = 8 + 14 * depth + 'px';
    name.title = q.path.slice(6);
    const bar = text('span', '', 'bar');
    q.busy.forEach((ns, k) => {
      if (!ns) return;
      const i = document.createElement('i');
      i.style.width = 100 * ns / most + '%';
      i.style.background = CLASS[k];
      i.title = meta.classes[k] + ' ' + dur(ns);
      bar.append(i);
    });
    const list = text('button', q.events.toLocaleString('en') + ' ×', 'count');
    list.title = 'list its instructions';
    list.onclick = () => { $('search').value = q.path; search(q.path); };
    row.append(name, bar, text('span', q.on_path ? dur(q.on_path) + ' ' + (100 * q.on_path / Math.max(1, meta.sections[0].span)).toFixed(1) + ' %' : '', 'time'),
      text('span', q.bound, 'more'), text('span', q.flops ? short(q.flops) + 'FLOP' : '', 'more'), text('span', q.bytes ? short(q.bytes) + 'B' : '', 'more'), list);
    let opened = null;
    name.onclick = () => {
      if (!kids.length) { list.onclick(); return; }
      if (opened) { for (const r of opened) r.remove(); opened = null; name.textContent = '▸ ' + q.name; name.setAttribute('aria-expanded', false); return; }
      opened = [];
      let after = row;
      for (const k of kids.slice(0, 200)) {
        const r = add(k, depth + 1);
        after.after(r);
        after = r;
        opened.push(r);
      }
      const drop = opened;
      row.drop = () => { for (const r of drop) { if (r.drop) r.drop(); r.remove(); } };
      name.textContent = '▾ ' + q.name;
      name.setAttribute('aria-expanded', true);
    };
    const toggleRow = name.onclick;
    name.onclick = () => { if (opened && row.drop) row.drop(); toggleRow(); };
    if (kids.length) name.setAttribute('aria-expanded', false);
    return row;
  };
  const roots = children.get(-1) || [];
  const rows = roots.slice(0, 200).map(n => add(n, 0));
  tree.append(...rows);
  box.append(tree);
  // A single way down is no choice.
  let only = roots;
  for (let k = 0; only.length === 1 && children.has(only[0]) && k < 8; k++) {
    const at = [...tree.children].find(r => r.querySelector('.name') && r.querySelector('.name').title === groups[only[0]].path.slice(6));
    if (!at) break;
    at.querySelector('.name').click();
    only = children.get(only[0]);
  }
}

// bytes writes a size with three digits.
function bytes(v) {
  let k = 0;
  for (; v >= 1023.5 && k < 5; k++) v /= 1024;
  return (k ? v.toPrecision(v < 9.995 ? 3 : v < 99.95 ? 3 : 4) : v) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][k];
}

// memory lists what the memories hold at most, and the tensors that make it.
let memories = null;
async function memory(box) {
  if (!memories) {
    box.append(text('p', 'following the memories …', 'hint'));
    let list;
    try { list = await src.memory(); } catch (e) { $('status').textContent = e.message; return; }
    memories = list;
    if (tab !== 'memory') return;
    box.textContent = '';
  }
  if (!memories.length) box.append(text('p', 'Nothing is known of the memories.', 'hint'));
  for (const m of memories) {
    const part = document.createElement('div'), t = document.createElement('table');
    t.className = 'blocks';
    const unit = m.unit && m.unit !== 'bytes' ? ' a partition' : '', share = m.size ? ' of ' + bytes(m.size) + ' (' + (100 * m.peak / m.size).toFixed(1) + ' %)' + (m.peak > m.size ? ': does not fit' : '') : '';
    const head = m.absent ? m.name + ': not known: ' + m.absent :
      m.name + ': ' + (m.at_most ? 'at most ' : 'peak ') + bytes(m.peak) + share + unit + (m.tensors.length ? ', at ' + time(m.at) : '');
    part.append(text('div', head, 'head'));
    if (m.tensors.length) {
      const h = t.createTHead().insertRow();
      for (const c of ['tensor', 'size', 'from', 'to', 'kind', 'operator']) h.append(text('th', c));
      const body = t.createTBody();
      for (const x of m.tensors) {
        const r = body.insertRow();
        r.append(text('td', x.name), text('td', bytes(x.bytes)), text('td', time(x.from)), text('td', time(x.to)), text('td', x.kind), text('td', x.operator));
      }
      if (m.left) body.insertRow().append(text('td', '… and ' + m.left.toLocaleString('en') + ' more'));
      part.append(t);
    }
    box.append(part);
  }
}

// blocks lists the blocks of the program, most time first.
function blocks(box) {
  const sum = Math.max(1, prog.blocks.reduce((a, b) => a + b.total, 0));
  const t = document.createElement('table');
  t.className = 'blocks';
  const h = t.createTHead().insertRow();
  for (const c of ['block', 'instructions', 'runs', 'one run', 'all runs', '']) h.append(text('th', c));
  const body = t.createTBody();
  prog.blocks.forEach((b, n) => {
    const r = body.insertRow(), held = !prog.held || prog.held.includes(n), name = text(held ? 'button' : 'span', b.name, 'name');
    if (n === blk) { r.className = 'bind'; name.setAttribute('aria-current', 'true'); }
    if (held) name.onclick = () => openBlock(n).then(all); else name.title = 'not in this file: perfsim view --block shows it';
    const c = document.createElement('td'), bar = document.createElement('td'), i = document.createElement('i');
    c.append(name);
    i.style.width = 100 * b.total / sum + '%';
    bar.className = 'bar';
    bar.append(i, text('span', (100 * b.total / sum).toFixed(1) + ' %'));
    r.append(c, text('td', b.events.toLocaleString('en')), text('td', b.runs.toLocaleString('en')), text('td', dur(b.ns)), text('td', dur(b.total)), bar);
  });
  box.append(t);
}

function detail(e) {
  const box = $('detail');
  const t = document.createElement('table');
  const add = (k, v, cls) => { const r = t.insertRow(); r.append(text('td', k), text('td', v, cls || 'text')); return r; };
  add('event', e.name);
  add('lane', meta.sections[e.s].name + ' / ' + meta.sections[e.s].rows[e.row].name);
  add('time', time(e.start) + ' to ' + time(e.end) + ' (' + dur(e.end - e.start) + ')');
  for (const o of e.others || []) {
    const late = e.start - o.start;
    add(meta.sections[o.section].name, time(o.start) + ' to ' + time(o.end) + ' (' + dur(o.end - o.start) + '), ' +
      (late ? dur(Math.abs(late)) + (late < 0 ? ' later' : ' earlier') : 'at the same time'));
  }
  if (e.source) {
    const r = t.insertRow(), a = text('a', e.source);
    const m = e.source.match(/^(.*):(\d+)$/);
    // The path is any text of the input: without its escapes it could end the
    // path and begin a query.
    a.href = m ? 'vscode://file/' + m[1].split('/').map(encodeURIComponent).join('/') + ':' + m[2] : '#';
    a.title = 'open in the editor';
    const c = document.createElement('td');
    c.append(a);
    r.append(text('td', 'source'), c);
  }
  for (const f of e.facts) add(f.name, f.value);
  box.append(t, links('waits for', e.preds, e), links('awaited by', e.succs, e));
}

const MOST = 60;
function links(title, list, e) {
  const t = document.createElement('table');
  const r = t.insertRow();
  r.append(text('td', title + ' (' + list.length + ')'));
  for (const l of list.slice(0, MOST)) {
    const row = t.insertRow();
    if (l.binds) row.className = 'bind';
    const a = text('button', l.name, 'name');
    a.onclick = () => select(e.s, l.id, true);
    const c = document.createElement('td');
    c.append(a);
    row.append(c, text('td', l.kind), text('td', meta.sections[e.s].rows[l.row] ? meta.sections[e.s].rows[l.row].name : ''),
      text('td', 'gap ' + dur(l.gap)));
  }
  if (list.length > MOST) t.insertRow().append(text('td', '… and ' + (list.length - MOST) + ' more'));
  return t;
}

// ---- moving between events ----

// neighbour selects the event before or after on the lane; without a selection
// the first one in sight.
function neighbour(dir) {
  if (!sel) { inSight(layout().rows.filter(lane), 1); return; }
  const r = tiles[sel.s] && tiles[sel.s].rows[sel.row];
  if (!r) return;
  let i = first(r.n, k => r.t0[k] >= sel.start);
  while (i < r.n && r.id[i] !== sel.id && r.t0[i] === sel.start) i++;
  i += dir;
  while (i >= 0 && i < r.n && r.id[i] === NONE) i += dir;
  if (i >= 0 && i < r.n) select(sel.s, r.id[i], true); else say(dir < 0 ? 'first event of the lane' : 'last event of the lane');
}

// inSight selects the first event in sight of the rows.
function inSight(rows, dir) {
  for (const row of rows) {
    const tile = tiles[row.s], r = tile && tile.rows[row.r];
    if (!r) continue;
    const mid = sel ? sel.start : T0;
    let best = -1;
    for (let i = first(r.n, k => r.t1[k] >= T0); i < r.n && r.t0[i] <= T1; i++)
      if (r.id[i] !== NONE && (best < 0 || Math.abs(r.t0[i] - mid) < Math.abs(r.t0[best] - mid))) best = i;
    if (best >= 0) { select(row.s, r.id[best], true); return; }
  }
  say('no single event in sight: zoom in with W');
}

// across selects the event of the lane above or below that is nearest in time.
function across(dir) {
  const rows = layout().rows.filter(lane);
  if (!sel) { inSight(rows, dir); return; }
  const n = rows.findIndex(r => r.s === sel.s && r.r === sel.row);
  inSight(dir > 0 ? rows.slice(n + 1) : rows.slice(0, n).reverse(), dir);
}

// ---- search ----

let hits = [], picked = 0;
async function search(q) {
  if (!q) { $('hits').hidden = true; hits = []; return; }
  try { hits = await src.search(q); } catch (e) { hits = []; }
  if ($('search').value !== q) return;
  picked = 0;
  const ul = $('hits');
  ul.textContent = '';
  ul.hidden = false;
  if (!hits.length) ul.append(text('li', 'no event has that name'));
  if (hits.length === 200) ul.append(text('li', 'the first 200:'));
  const skip = ul.children.length;
  hits.forEach((h, i) => {
    const li = document.createElement('li');
    if (i === 0) li.className = 'on';
    li.append(text('b', h.name), text('span', meta.sections[h.section].rows[h.row].name + '  ' + time(h.start)));
    li.onclick = () => go(i);
    ul.append(li);
  });
  search.skip = hits.length ? skip : 0;
  say(hits.length + ' events found');
}
function go(i) {
  const h = hits[i];
  if (!h) return;
  $('hits').hidden = true;
  $('search').blur();
  const w = Math.max((h.end - h.start) * 30, 200);
  jump((h.start + h.end) / 2 - w / 2, (h.start + h.end) / 2 + w / 2);
  select(h.section, h.id, true);
  view.focus();
}

// ---- controls ----

async function toggle(s) {
  if (!shown.includes(s) && !meta.sections[s].ready) {
    const m = await src.section(s);
    Object.assign(meta.sections[s], m, {ready: true});
  }
  shown = shown.includes(s) ? shown.filter(q => q !== s) : shown.concat(s).sort((a, b) => a - b);
  buttons();
  load();
  redraw();
  link();
}

function buttons() {
  const box = $('sections');
  box.textContent = '';
  meta.sections.forEach((s, i) => {
    const b = text('button', s.name);
    b.setAttribute('aria-pressed', shown.includes(i));
    b.onclick = () => toggle(i);
    box.append(b, ' ');
  });
}

// laneList lists the lanes with a box each that hides them.
function laneList() {
  const box = $('lanelist');
  box.textContent = '';
  const seen = new Set();
  for (const s of shown) for (const r of meta.sections[s].rows) if (!r.parent) seen.add(r.name);
  for (const c of counters) seen.add(c.name);
  for (const name of seen) {
    const l = document.createElement('label'), c = document.createElement('input');
    c.type = 'checkbox';
    c.checked = !hidden.has(name);
    c.onchange = () => { if (c.checked) hidden.delete(name); else hidden.add(name); move(0); };
    l.append(c, ' ' + name);
    box.append(l);
  }
}

function theme(next) {
  const dark = next || (document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
  document.documentElement.dataset.theme = dark;
  readColors();
  if (meta) { if (tab === 'opcodes') open(tab); legend(); }
  redraw();
}

function legend() {
  const box = $('legend');
  box.textContent = '';
  const path = text('span', 'critical path'), bar = document.createElement('i');
  bar.className = 'bar';
  path.prepend(bar);
  if (occurring.length) box.append(path);
  const used = new Set(occurring.filter(c => c !== 'lane' && c !== 'start')); // those leave no idle time
  if (used.size) box.append(text('span', 'idle before an event, by cause:'));
  for (const [c, col] of Object.entries(CAUSES)) {
    if (!used.has(c)) continue;
    const s = text('span', c), i = document.createElement('i');
    i.style.background = col;
    s.prepend(i);
    box.append(s);
  }
  if (meta.loops && meta.loops.length) box.append(text('span', 'loops: as full as the lane is busy; click for the last iteration'));
  if (prog.sampled) box.append(text('span', 'sampled: ' + prog.sampled, 'sampled'));
  if (noCounters) box.append(text('span', 'counters: ' + noCounters));
}

function keys(ev) {
  const typing = ev.target === $('search');
  if (typing) {
    const li = [...$('hits').children].slice(search.skip || 0);
    if (ev.key === 'Escape') { $('search').value = ''; $('hits').hidden = true; view.focus(); }
    if (ev.key === 'Enter') go(picked);
    if ((ev.key === 'ArrowDown' || ev.key === 'ArrowUp') && hits.length) {
      li[picked].className = '';
      picked = (picked + (ev.key === 'ArrowDown' ? 1 : hits.length - 1)) % hits.length;
      li[picked].className = 'on';
      li[picked].scrollIntoView({block: 'nearest'});
      ev.preventDefault();
    }
    return;
  }
  if (ev.ctrlKey || ev.metaKey || ev.altKey || !meta) return;
  const within = ev.target.closest && ev.target.closest('button, input, select, summary, a'); // what has keys of its own
  if (within && (ev.key === 'Enter' || ev.key === ' ' || ev.key.startsWith('Arrow'))) return;
  const w = T1 - T0, mid = hover ? at(hover.x) : sel ? (sel.start + sel.end) / 2 : (T0 + T1) / 2;
  switch (ev.key.toLowerCase()) {
  case 'w': case '+': zoom(1 / 1.4, mid); break;
  case 's': case '-': zoom(1.4, mid); break;
  case 'a': case 'arrowleft': show(T0 - w * .15, T1 - w * .15); break;
  case 'd': case 'arrowright': show(T0 + w * .15, T1 + w * .15); break;
  case 'arrowup': move(-ROW); break;
  case 'arrowdown': move(ROW); break;
  case 'f': if (sel) { const l = Math.max((sel.end - sel.start) * 4, 40); jump((sel.start + sel.end - l) / 2, (sel.start + sel.end + l) / 2); } break;
  case '0': all(); break;
  case 'backspace': { const b = past.pop(); if (b) show(b[0], b[1]); break; }
  case ',': neighbour(-1); break;
  case '.': case 'enter': neighbour(1); break;
  case '[': across(-1); break;
  case ']': across(1); break;
  case 'p': if (sel) { const b = sel.preds.find(l => l.binds) || sel.preds[0]; if (b) select(sel.s, b.id, true); } break;
  case 'b': if (prog.blocks.length > 1) open('blocks'); break;
  case 'o': open('operators'); break;
  case 'm': setSelecting(!selecting); break;
  case 'c': $('critical').click(); break;
  case 't': theme(); break;
  case '/': $('search').focus(); $('search').select(); break;
  case '?': help(); break;
  case 'escape':
    if (!$('keys').hidden) help();
    else if (!$('hits').hidden) $('hits').hidden = true;
    else deselect();
    break;
  default: return;
  }
  ev.preventDefault();
}

function help() {
  $('keys').hidden = !$('keys').hidden;
  $('help').setAttribute('aria-expanded', !$('keys').hidden);
}

function setSelecting(on) {
  selecting = on;
  $('select').setAttribute('aria-pressed', on);
  view.style.cursor = on ? 'crosshair' : '';
}

function move(dy) {
  const most = Math.max(0, layout().height - view.clientHeight + 20);
  scroll = Math.max(0, Math.min(scroll + dy, layout().height < view.clientHeight ? 0 : most));
  redraw();
}

// tip says what is under the pointer.
let tipKey = '';
function tip() {
  const box = $('tip');
  let s = '';
  const row = hover && !hover.down ? rowAt(hover.y) : null;
  if (row && hover.x < LABEL && lane(row)) {
    const r = meta.sections[row.s].rows[row.r];
    s = r.name + '\n' + dur(r.busy) + ' busy of ' + dur(meta.sections[row.s].span) + (hasParts(row.s, row.r) ? '\nclick: one event under the other, whole' : '');
  } else if (row && row.c !== undefined && hover.x >= LABEL) {
    const c = counters[row.c], k = first(c.time.length, i => c.time[i] > at(hover.x)) - 1;
    s = c.name + '\nmax ' + amount(c.top, c.unit) + (c.most ? ' of ' + amount(c.most, c.unit) : '');
    if (k >= 0) s = c.name + '\n' + time(at(hover.x)) + ': ' + amount(c.value[k], c.unit) + (c.most ? ' of ' + amount(c.most, c.unit) : '');
  } else {
    const h = hover && !hover.down ? hit(hover.x, hover.y) : null;
    if (h && h.loop) {
      const l = h.loop, info = meta.loops[l[0]];
      s = 'loop ' + info.name + ', ' + info.trips.toLocaleString('en') + ' trips\n' + dur(l[3] - l[1]) + ', ' + dur((l[3] - l[1]) / info.trips) + ' an iteration\n' +
        meta.sections[h.s].rows[h.row].name + ' busy ' + dur(l[4]) + ' (' + (100 * l[4] / Math.max(1, l[3] - l[1])).toFixed(1) + ' %), mostly ' + meta.kinds[l[5]] + '\nclick: its last iteration';
    } else if (h) {
      const one = h.r.id[h.i] !== NONE;
      s = (one ? [meta.kinds[h.r.kind[h.i]], names.get(h.r.id[h.i])].filter(Boolean).join('  ') : 'events too short to draw; click zooms in') + '\n' +
        time(h.r.t0[h.i]) + ', ' + dur(h.r.t1[h.i] - h.r.t0[h.i]) + (one ? '' : ', ' + Math.round(100 * h.r.share[h.i] / 255) + ' % busy') +
        (one && h.r.cause[h.i] ? '\nheld by: ' + meta.causes[h.r.cause[h.i] - 1] : '');
    }
  }
  box.hidden = !s;
  if (!s) { tipKey = ''; return; }
  if (s !== tipKey) { box.textContent = s; tipKey = s; tip.w = box.offsetWidth; tip.h = box.offsetHeight; }
  box.style.left = Math.max(2, Math.min(hover.x + 14, view.clientWidth - tip.w - 4)) + 'px';
  box.style.top = Math.max(2, hover.y + 18 + tip.h > view.clientHeight ? hover.y - tip.h - 8 : hover.y + 16) + 'px';
}

// click acts on what is at a point.
function click(px, py) {
  const row = rowAt(py);
  if (px < LABEL && row && lane(row)) {
    const k = row.s + ':' + row.r;
    if (hasParts(row.s, row.r)) { if (!unfolded.delete(k)) unfolded.add(k); move(0); }
    return;
  }
  const h = hit(px, py);
  if (!h) deselect();
  else if (h.loop) {
    const info = meta.loops[h.loop[0]], pad = (info.end - info.start) * .04;
    jump(info.start - pad, info.end + pad);
    say('last iteration of loop ' + info.name);
  } else if (h.r.id[h.i] === NONE) { past.push([T0, T1]); zoom(.2, at(px)); } else select(h.s, h.r.id[h.i], false);
}

function listen() {
  const down = new Map(); // pointers that are down
  let drag = null, moved = false, pinch = null, from = null;
  view.addEventListener('wheel', ev => {
    ev.preventDefault();
    if (ev.ctrlKey || ev.metaKey) { zoom(Math.pow(1.0025, ev.deltaY), at(ev.offsetX)); return; }
    if (Math.abs(ev.deltaX) > Math.abs(ev.deltaY) || ev.shiftKey) {
      const d = (ev.deltaX || ev.deltaY) / (view.clientWidth - LABEL) * (T1 - T0);
      show(T0 + d, T1 + d);
    } else if (layout().height > view.clientHeight) move(ev.deltaY);
    else zoom(Math.pow(1.0015, ev.deltaY), at(ev.offsetX));
  }, {passive: false});
  const spot = () => { // middle and distance of two pointers
    const [a, b] = [...down.values()];
    return {x: (a.x + b.x) / 2, d: Math.max(20, Math.abs(a.x - b.x), Math.abs(a.y - b.y))};
  };
  view.addEventListener('pointerdown', ev => {
    down.set(ev.pointerId, {x: ev.offsetX, y: ev.offsetY});
    view.setPointerCapture(ev.pointerId);
    hover = {x: ev.offsetX, y: ev.offsetY, down: true};
    if (down.size === 2) {
      const p = spot();
      pinch = {d: p.d, t: at(p.x), w: T1 - T0};
      drag = from = null;
      moved = true;
      return;
    }
    moved = false;
    if ((ev.shiftKey || selecting) && ev.offsetX >= LABEL) from = {t: at(ev.offsetX), y: ev.offsetY};
    else drag = {x: ev.offsetX, y: ev.offsetY, T0, T1, scroll};
  });
  view.addEventListener('pointermove', ev => {
    const p = down.get(ev.pointerId);
    hover = {x: ev.offsetX, y: ev.offsetY, down: down.size > 0};
    if (p) { p.x = ev.offsetX; p.y = ev.offsetY; }
    if (pinch && down.size === 2) {
      const q = spot(), w = pinch.w * pinch.d / q.d, part = (q.x - LABEL) / (view.clientWidth - LABEL);
      show(pinch.t - w * part, pinch.t + w * (1 - part));
      return;
    }
    if (from) {
      moved = true;
      const rows = layout().rows.filter(r => lane(r) && r.y < Math.max(from.y, ev.offsetY) && r.y + ROW > Math.min(from.y, ev.offsetY));
      if (rows.length) {
        const s = rows[ev.offsetY >= from.y ? 0 : rows.length - 1].s, t = at(Math.max(LABEL, ev.offsetX));
        area = {s, rows: noParts(s, rows.filter(r => r.s === s).map(r => r.r)), t0: Math.min(from.t, t), t1: Math.max(from.t, t), sums: null};
      }
      redraw();
      return;
    }
    if (drag) {
      const dx = ev.offsetX - drag.x;
      if (Math.abs(dx) + Math.abs(ev.offsetY - drag.y) > (ev.pointerType === 'touch' ? 8 : 3)) moved = true;
      const d = -dx / (view.clientWidth - LABEL) * (drag.T1 - drag.T0);
      if (moved) { show(drag.T0 + d, drag.T1 + d); scroll = drag.scroll; move(drag.y - ev.offsetY); }
      return;
    }
    tip();
  });
  const up = ev => {
    if (!down.delete(ev.pointerId)) return;
    if (hover) hover.down = down.size > 0;
    if (pinch) { if (!down.size) pinch = null; drag = null; return; }
    const start = from;
    drag = from = null;
    if (start && moved && area) { setSelecting(false); selectArea(area.s, area.rows, area.t0, area.t1); return; }
    if (!moved && ev.type === 'pointerup') click(ev.offsetX, ev.offsetY);
    if (ev.pointerType === 'touch') { hover = null; tip(); }
  };
  view.addEventListener('pointerup', up);
  view.addEventListener('pointercancel', up);
  view.addEventListener('pointerleave', () => { hover = null; tip(); });
  let mapDrag = false;
  const jumpTo = ev => {
    const t = (ev.offsetX - LABEL) / (map.clientWidth - LABEL) * span, w = T1 - T0;
    show(t - w / 2, t + w / 2);
  };
  map.addEventListener('pointerdown', ev => { mapDrag = true; map.setPointerCapture(ev.pointerId); jumpTo(ev); });
  map.addEventListener('pointermove', ev => { if (mapDrag) jumpTo(ev); });
  map.addEventListener('pointerup', () => { mapDrag = false; });
  addEventListener('keydown', keys);
  addEventListener('resize', () => { redraw(); load(); });
  let wait = 0;
  $('search').addEventListener('input', ev => { clearTimeout(wait); const q = ev.target.value; wait = setTimeout(() => search(q), 120); });
  $('fit').onclick = all;
  $('select').onclick = () => setSelecting(!selecting);
  $('critical').onclick = () => { marks = !marks; $('critical').setAttribute('aria-pressed', marks); redraw(); };
  $('theme').onclick = () => theme();
  $('help').onclick = help;
  $('sort').onchange = ev => { sorting = ev.target.value; redraw(); };
  $('lanes').addEventListener('toggle', laneList);
  $('block').onclick = () => open('blocks');
}

async function fromLink() {
  const p = new URLSearchParams(location.hash.slice(1));
  const b = parseInt(p.get('b') || prog.first, 10);
  if (b !== blk && b >= 0 && b < prog.blocks.length) await openBlock(b);
  const t0 = parseFloat(p.get('t0')), t1 = parseFloat(p.get('t1'));
  if (p.get('show')) {
    const want = p.get('show').split(',').map(Number).filter(s => s < meta.sections.length);
    for (const s of want) if (!shown.includes(s)) await toggle(s);
    shown = want;
    buttons();
  }
  if (t0 < t1) show(t0, t1); else all();
  const m = /^(\d+):(\d+)$/.exec(p.get('sel') || '');
  if (m) select(+m[1], +m[2], false);
}

// openBlock shows a block. Causes, the critical path and counters come behind
// its first picture.
async function openBlock(b) {
  let m;
  try { m = await src.open(b); } catch (e) { $('status').textContent = e.message; return; }
  blk = b;
  meta = m;
  meta.sections.forEach(s => { s.ready = !s.folded || s.rows.some(r => r.events); });
  sel = area = groups = null;
  counters = [];
  noCounters = '';
  occurring = [];
  past = [];
  unfolded = new Set();
  scroll = 0;
  names.clear();
  const facts = $('blockfacts');
  facts.textContent = '';
  if (prog.blocks.length > 1) for (const f of meta.facts) fact(facts, f);
  const one = prog.blocks[b];
  $('block').hidden = prog.blocks.length < 2;
  $('block').textContent = one.name + '  ▾';
  span = Math.max(1, ...meta.sections.map(s => s.span));
  shown = meta.sections.map((_, i) => i).filter(i => !meta.sections[i].folded);
  usual = shown.slice();
  tiles = meta.sections.map(() => null);
  $('empty').hidden = meta.sections.some(s => s.rows.length);
  wholeKey = '';
  buttons();
  open(['blocks', 'operators', 'memory'].includes(tab) ? tab : 'opcodes');
  legend();
  T0 = -span * .01;
  T1 = span * 1.01;
  behind(b);
}

// behind loads what the first picture does not need.
async function behind(b) {
  await new Promise(r => setTimeout(r, 50));
  while (loading) await new Promise(r => setTimeout(r, 20));
  try {
    const list = await src.why();
    if (b !== blk) return;
    occurring = list;
    tiles = tiles.map(() => null);
    legend();
    load();
    const c = await src.counters();
    if (b !== blk) return;
    counters = c.counters;
    for (const q of counters) q.top = Math.max(...q.value, 1e-9);
    noCounters = c.reason || '';
    legend();
    if ($('lanes').open) laneList();
    redraw();
  } catch (e) { $('status').textContent = e.message; }
}

function fact(box, f) {
  const d = document.createElement('div');
  d.append(text('dt', f.name), text('dd', f.value));
  box.append(d);
}

async function start() {
  view = $('view');
  map = $('map');
  g = view.getContext('2d', {alpha: false});
  mg = map.getContext('2d', {alpha: false});
  theme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  const data = $('data');
  src = data ? new Local(data.textContent.trim()) : new Remote();
  prog = await src.program();
  document.title = prog.title + ' – perfsim';
  $('title').textContent = prog.title;
  for (const f of prog.facts) fact($('facts'), f);
  listen();
  if (!prog.blocks.length) { $('empty').hidden = false; return; }
  blk = -1;
  await fromLink();
  addEventListener('hashchange', fromLink);
  view.focus({preventScroll: true});
}
start().catch(e => { document.getElementById('status').textContent = 'perfsim does not answer: ' + e.message; });
})();
