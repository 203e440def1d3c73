'use strict';
// The timeline page. A source gives boxes for a stretch of time at a
// resolution; the page keeps a stretch three screens wide and redraws from it
// while the person moves, so that moving never waits for the source.
(() => {
const $ = id => document.getElementById(id);
const NONE = 0xffffffff;
const LABEL = 150, ROW = 22, GAP = 10, HEAD = 20, AXIS = 20;

// Colours that people with any kind of colour vision can tell apart (after
// Okabe and Ito); a kind's colour follows from its number.
const KINDS = ['#56b4e9', '#e69f00', '#009e73', '#cc79a7', '#f0e442', '#0072b2', '#d55e00', '#8c8c8c'];
const CAUSES = {flow: '#0072b2', anti: '#d55e00', output: '#cc79a7', ordered: '#8c8c8c', bank: '#f0e442', coupling: '#e69f00',
  ring: '#009e73', transfer: '#56b4e9', barrier: '#444444', semaphore: '#6a3d9a', model: '#b8a1d9', lane: '#bbbbbb', start: '#bbbbbb'};

// ---- sources ----

class Remote {
  async meta() { return (await this.get('api/meta')).json(); }
  async tiles(s, t0, t1, px) {
    const b = await (await this.get(`api/tiles?s=${s}&t0=${t0}&t1=${t1}&px=${px}`)).arrayBuffer();
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
  async event(s, id) { const r = await this.get(`api/event?s=${s}&id=${id}`); return r.json(); }
  async search(q) { return (await this.get('api/search?q=' + encodeURIComponent(q))).json(); }
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

// Local holds all events itself: the page as one file.
class Local {
  constructor(text) { this.text = text; }
  async meta() {
    const raw = Uint8Array.from(atob(this.text), c => c.charCodeAt(0));
    const json = await new Response(new Blob([raw]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
    this.data = json;
    this.where = json.sections.map(() => new Map());
    json.sections.forEach((s, si) => {
      s.rows.forEach((r, ri) => {
        const n = r.s.length, row = newRow(n);
        let t = 0, id = 0;
        for (let i = 0; i < n; i++) {
          row.t0[i] = t += r.s[i];
          row.t1[i] = t + r.d[i];
          row.id[i] = id += r.i[i];
          row.kind[i] = r.k[i];
          row.cause[i] = r.c ? r.c[i] : 0;
          row.share[i] = 255;
          this.where[si].set(row.id[i], [ri, i]);
        }
        for (const i of r.x || []) row.crit[i] = 1;
        s.rows[ri] = row;
      });
    });
    const off = new Uint32Array(json.off.length + 1);
    json.off.forEach((d, i) => { off[i + 1] = off[i] + d; });
    this.off = off;
    this.succ = null;
    return json.meta;
  }
  name(id) { return this.data.names[this.data.name[id]] || 'I-' + id; }
  async tiles(s, t0, t1, px) {
    const grain = Math.max(1, (t1 - t0) / px);
    return this.data.sections[s].rows.map(r => coarse(r, t0, t1, grain));
  }
  async event(s, id) {
    const at = this.where[s].get(id);
    if (!at) throw new Error('no such event');
    const [ri, i] = at, row = this.data.sections[s].rows[ri], m = this.data;
    const e = {id, row: ri, name: this.name(id), start: row.t0[i], end: row.t1[i], preds: [], succs: [], source: m.sources[m.source[id]] || '',
      facts: [{name: 'opcode', value: m.meta.kinds[row.kind[i]]}]};
    if (row.cause[i]) e.facts.push({name: 'held by', value: m.meta.causes[row.cause[i] - 1]});
    if (row.crit[i]) e.facts.push({name: 'critical path', value: 'yes'});
    const link = (p, kind, from, to) => {
      const w = this.where[s].get(p);
      if (!w) return null;
      const r = this.data.sections[s].rows[w[0]];
      return {id: p, row: w[0], name: this.name(p), start: r.t0[w[1]], end: r.t1[w[1]], kind, gap: 0, binds: false};
    };
    for (let k = this.off[id]; k < this.off[id + 1]; k++) {
      const l = link(id - m.back[k], m.edgeKinds[m.kind[k]]);
      if (l) { l.gap = e.start - l.end; e.preds.push(l); }
    }
    if (!this.succ) {
      this.succ = new Map();
      for (let c = 0; c + 1 < this.off.length; c++)
        for (let k = this.off[c]; k < this.off[c + 1]; k++) {
          const p = c - m.back[k];
          if (!this.succ.has(p)) this.succ.set(p, []);
          this.succ.get(p).push([c, m.kind[k]]);
        }
    }
    for (const [c, kind] of this.succ.get(id) || []) {
      const l = link(c, m.edgeKinds[kind]);
      if (l) { l.gap = l.start - e.end; e.succs.push(l); }
    }
    e.others = [];
    this.where.forEach((at, o) => {
      const w = o !== s && at.get(id), r = w && m.sections[o].rows[w[0]];
      if (w) e.others.push({section: o, start: r.t0[w[1]], end: r.t1[w[1]]});
    });
    return e;
  }
  async search(q) {
    q = q.toLowerCase();
    const hits = [];
    this.where[0].forEach(([ri, i], id) => {
      const r = this.data.sections[0].rows[ri];
      if (hits.length < 200 && (this.name(id) + ' ' + this.data.meta.kinds[r.kind[i]]).toLowerCase().includes(q))
        hits.push({section: 0, row: ri, id, name: this.name(id), start: r.t0[i], end: r.t1[i]});
    });
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
    row.share[k] = 255;
    if (b - a > 1) {
      let busy = 0;
      for (let x = a; x < b; x++) { busy += r.t1[x] - r.t0[x]; row.crit[k] |= r.crit[x]; }
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

let src, meta, view, map, g, mg;
let T0 = 0, T1 = 1;            // the time shown, ns
let span = 1;
let scroll = 0;                // px
let shown = [], usual = [];    // sections that are shown now, and at first
let tiles = [];                // per section: {t0, t1, px, rows}
let sel = null;                // the selected event with its section
let marks = true;              // critical path
let loading = false, stale = false, frame = 0;
let hover = null;
const frames = [];             // when the last frames were drawn
window.perfsim = {frames, get state() { return {T0, T1, sel, loading}; }};

const css = n => getComputedStyle(document.documentElement).getPropertyValue(n).trim();
let colors = {};
function readColors() {
  colors = {bg: css('--bg'), fg: css('--fg'), soft: css('--soft'), line: css('--line'), band: css('--band'), accent: css('--accent'), crit: css('--crit')};
}

function time(ns) {
  const a = Math.abs(ns);
  if (a < 1e3) return ns.toFixed(a < 10 && ns % 1 ? 1 : 0) + ' ns';
  if (a < 1e6) return (ns / 1e3).toFixed(a < 1e4 ? 3 : 2) + ' µs';
  if (a < 1e9) return (ns / 1e6).toFixed(3) + ' ms';
  return (ns / 1e9).toFixed(3) + ' s';
}

// ---- layout: where rows are ----

function layout() {
  const rows = [];
  let y = AXIS - scroll;
  for (const s of shown) {
    rows.push({s, y, head: true});
    y += HEAD;
    meta.sections[s].rows.forEach((r, i) => { rows.push({s, r: i, y}); y += ROW; });
    y += GAP;
  }
  return {rows, height: y + scroll};
}

const x = t => LABEL + (t - T0) / (T1 - T0) * (view.clientWidth - LABEL);
const at = px => T0 + (px - LABEL) / (view.clientWidth - LABEL) * (T1 - T0);

// ---- drawing ----

function draw() {
  frame = 0;
  const now = performance.now();
  frames.push(now);
  if (frames.length > 240) frames.shift();
  const w = view.clientWidth, h = view.clientHeight, d = devicePixelRatio || 1;
  if (view.width !== Math.round(w * d) || view.height !== Math.round(h * d)) {
    view.width = Math.round(w * d);
    view.height = Math.round(h * d);
  }
  g.setTransform(d, 0, 0, d, 0, 0);
  g.fillStyle = colors.bg;
  g.fillRect(0, 0, w, h);
  g.font = '11px system-ui, sans-serif';
  g.textBaseline = 'middle';
  const {rows} = layout();
  const scale = (w - LABEL) / (T1 - T0);
  for (const row of rows) {
    if (row.y > h || row.y + ROW < 0) continue;
    if (row.head) {
      g.fillStyle = colors.soft;
      g.fillText(meta.sections[row.s].name + '  ·  ' + time(meta.sections[row.s].span), 8, row.y + HEAD / 2);
      continue;
    }
    if (row.r % 2 === 0) {
      g.fillStyle = colors.band;
      g.fillRect(0, row.y, w, ROW);
    }
  }
  grid();
  for (const row of rows) {
    const tile = tiles[row.s];
    if (!row.head && tile && row.y <= h && row.y + ROW >= 0) drawRow(tile.rows[row.r], row.y + 3, ROW - 6, w, scale);
  }
  drawLinks(rows);
  // Labels last, so that boxes slide under them.
  for (const row of rows) {
    if (row.head || row.y > h || row.y + ROW < 0) continue;
    const r = meta.sections[row.s].rows[row.r];
    g.fillStyle = row.r % 2 === 0 ? colors.band : colors.bg;
    g.fillRect(0, row.y, LABEL - 2, ROW);
    g.fillStyle = colors.fg;
    g.fillText(clip(r.name, LABEL - 56), 8, row.y + ROW / 2);
    g.fillStyle = colors.soft;
    g.textAlign = 'right';
    g.fillText((100 * r.busy / Math.max(1, meta.sections[row.s].span)).toFixed(1) + ' %', LABEL - 8, row.y + ROW / 2);
    g.textAlign = 'left';
  }
  axis(w);
  drawMap();
  $('status').textContent = (loading ? 'loading … ' : '') + time(T0) + ' to ' + time(T1) + '  (' + time(T1 - T0) + ')';
}

const widths = new Map();
function clip(text, px) {
  const key = text + px;
  if (!widths.has(key)) {
    let t = text;
    while (t.length > 1 && g.measureText(t + (t === text ? '' : '…')).width > px) t = t.slice(0, -1);
    widths.set(key, t === text ? text : t + '…');
    if (widths.size > 5000) widths.clear();
  }
  return widths.get(key) || text;
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
      const name = meta.kinds[r.kind[i]] || '';
      set(meta.quiet && meta.quiet[r.kind[i]] ? colors.soft : own === '#0072b2' ? '#fff' : '#111');
      g.fillText(clip(name, wide - 8), x0 + 4, y + h / 2);
    }
  }
  flush();
  mark();
}
const names = new Map();

function drawLinks(rows) {
  if (!sel) return;
  const pos = (s, r) => rows.find(q => q.s === s && q.r === r && !q.head);
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
  const key = [pw, ph, shown[0], colors.band].join();
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
    const rows = s.rows, rh = (h - 4) / Math.max(1, rows.length);
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
  const width = T1 - T0, a = Math.max(0, T0 - width), b = Math.min(span, T1 + width), px = Math.max(64, view.clientWidth - LABEL);
  const n = Math.min(16000, Math.max(64, Math.round(px / 2 * (b - a) / width)));
  try {
    await Promise.all(shown.map(async s => {
      const rows = await src.tiles(s, a, Math.max(b, a + 1), n);
      tiles[s] = {t0: a, t1: b, grain: width / px, rows};
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

function zoom(f, t) {
  const w = (T1 - T0) * f;
  show(t - (t - T0) * f, t - (t - T0) * f + w);
}

function link() {
  const p = new URLSearchParams();
  p.set('t0', Math.round(T0));
  p.set('t1', Math.round(T1));
  if (sel) p.set('sel', sel.s + ':' + sel.id);
  if (shown.join() !== usual.join()) p.set('show', shown.join(','));
  history.replaceState(null, '', '#' + p);
}

// ---- selecting ----

function hit(px, py) {
  if (px < LABEL) return null;
  const row = layout().rows.find(r => !r.head && py >= r.y && py < r.y + ROW);
  if (!row || !tiles[row.s]) return null;
  const r = tiles[row.s].rows[row.r], t = at(px), slop = 2 * (T1 - T0) / view.clientWidth;
  for (let i = Math.max(0, first(r.n, k => r.t1[k] >= t - slop) - 1); i < r.n && r.t0[i] <= t + slop; i++)
    if (r.t1[i] >= t - slop) return {s: row.s, row: row.r, i, r};
  return null;
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
  if (!shown.includes(s)) toggle(s);
  const row = layout().rows.find(r => !r.head && r.s === s && r.r === e.row);
  if (row && (row.y < AXIS || row.y > view.clientHeight - ROW)) scroll = Math.max(0, row.y + scroll - view.clientHeight / 2);
  detail(e);
  link();
  redraw();
}

function deselect() {
  sel = null;
  key();
  link();
  redraw();
}

function text(tag, s, cls) {
  const e = document.createElement(tag);
  e.textContent = s;
  if (cls) e.className = cls;
  return e;
}

// key is what stands below the lanes while no event is selected: the colours of
// the opcodes, how many events of each there are and how long they take.
function key() {
  const box = $('detail');
  box.textContent = '';
  const more = meta.work && meta.work.length ? ' Below: colours, events and their time as drawn, where each ends at the next on its lane.' : '';
  box.append(text('p', 'Click an event. W A S D move, / searches, ? lists the keys.' + more, 'hint'));
  if (!meta.work || !meta.work.length) return;
  const list = document.createElement('ul');
  list.className = 'key';
  list.setAttribute('aria-label', 'colours of ' + meta.sections[0].name);
  for (const w of meta.work) {
    const own = KINDS[meta.colors[w.kind] % KINDS.length];
    const li = text('li', ''), i = document.createElement('i'), name = text('b', meta.kinds[w.kind]);
    i.style.background = meta.quiet && meta.quiet[w.kind] ? tint(own, 5) : own;
    name.title = meta.kinds[w.kind];
    li.append(i, name, text('span', w.events.toLocaleString('en') + ' ×'), text('span', time(w.time)));
    list.append(li);
  }
  box.append(list);
}

function detail(e) {
  const box = $('detail');
  box.textContent = '';
  const t = document.createElement('table');
  const add = (k, v, cls) => { const r = t.insertRow(); r.append(text('td', k), text('td', v, cls || 'text')); return r; };
  add('event', e.name);
  add('lane', meta.sections[e.s].name + ' / ' + meta.sections[e.s].rows[e.row].name);
  add('time', time(e.start) + ' to ' + time(e.end) + ' (' + time(e.end - e.start) + ')');
  for (const o of e.others || []) {
    const late = e.start - o.start;
    add(meta.sections[o.section].name, time(o.start) + ' to ' + time(o.end) + ' (' + time(o.end - o.start) + '), ' +
      (late ? time(Math.abs(late)) + (late < 0 ? ' later' : ' earlier') : 'at the same time'));
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
  box.append(t, links('waits for', e.preds, e), links('lets go', e.succs, e));
}

const MOST = 60;
function links(title, list, e) {
  const t = document.createElement('table');
  const r = t.insertRow();
  r.append(text('td', title + ' (' + list.length + ')'));
  for (const l of list.slice(0, MOST)) {
    const row = t.insertRow();
    if (l.binds) row.className = 'bind';
    const a = text('a', l.name);
    a.onclick = () => select(e.s, l.id, true);
    const c = document.createElement('td');
    c.append(a);
    row.append(c, text('td', l.kind), text('td', meta.sections[e.s].rows[l.row] ? meta.sections[e.s].rows[l.row].name : ''),
      text('td', 'gap ' + time(l.gap)));
  }
  if (list.length > MOST) t.insertRow().append(text('td', '… and ' + (list.length - MOST) + ' more'));
  return t;
}

function neighbour(dir) {
  if (!sel) return;
  const r = tiles[sel.s] && tiles[sel.s].rows[sel.row];
  if (!r) return;
  let i = first(r.n, k => r.t0[k] >= sel.start);
  while (i < r.n && r.id[i] !== sel.id && r.t0[i] === sel.start) i++;
  i += dir;
  while (i >= 0 && i < r.n && r.id[i] === NONE) i += dir;
  if (i >= 0 && i < r.n) select(sel.s, r.id[i], true);
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
  if (!hits.length) ul.append(text('li', 'nothing is called that'));
  hits.forEach((h, i) => {
    const li = document.createElement('li');
    if (i === 0) li.className = 'on';
    li.append(text('b', h.name), text('span', meta.sections[h.section].rows[h.row].name + '  ' + time(h.start)));
    li.onclick = () => go(i);
    ul.append(li);
  });
}
function go(i) {
  const h = hits[i];
  if (!h) return;
  $('hits').hidden = true;
  $('search').blur();
  const w = Math.max((h.end - h.start) * 30, 200);
  show((h.start + h.end) / 2 - w / 2, (h.start + h.end) / 2 + w / 2);
  select(h.section, h.id, true);
  view.focus();
}

// ---- controls ----

function toggle(s) {
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

function theme(next) {
  const dark = next || (document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
  document.documentElement.dataset.theme = dark;
  readColors();
  if (meta && !sel) key();
  redraw();
}

function keys(ev) {
  const typing = ev.target === $('search');
  if (typing) {
    const li = [...$('hits').children];
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
  if (ev.ctrlKey || ev.metaKey || ev.altKey) return;
  const w = T1 - T0, mid = hover ? at(hover.x) : (T0 + T1) / 2;
  switch (ev.key.toLowerCase()) {
  case 'w': zoom(1 / 1.4, mid); break;
  case 's': zoom(1.4, mid); break;
  case 'a': case 'arrowleft': show(T0 - w * .15, T1 - w * .15); break;
  case 'd': case 'arrowright': show(T0 + w * .15, T1 + w * .15); break;
  case 'arrowup': scroll = Math.max(0, scroll - ROW); redraw(); break;
  case 'arrowdown': move(ROW); break;
  case 'f': if (sel) { const l = Math.max((sel.end - sel.start) * 4, 40); show((sel.start + sel.end - l) / 2, (sel.start + sel.end + l) / 2); } break;
  case '0': show(-span * .01, span * 1.01); break;
  case ',': neighbour(-1); break;
  case '.': neighbour(1); break;
  case 'p': if (sel) { const b = sel.preds.find(l => l.binds) || sel.preds[0]; if (b) select(sel.s, b.id, true); } break;
  case 'c': $('critical').click(); break;
  case 't': theme(); break;
  case '/': $('search').focus(); $('search').select(); break;
  case '?': $('keys').hidden = !$('keys').hidden; break;
  case 'escape': if (!$('keys').hidden) $('keys').hidden = true; else deselect(); break;
  default: return;
  }
  ev.preventDefault();
}

function move(dy) {
  scroll = Math.max(0, Math.min(scroll + dy, layout().height - view.clientHeight + 20));
  if (layout().height < view.clientHeight) scroll = 0;
  redraw();
}

function listen() {
  let drag = null, moved = false;
  view.addEventListener('wheel', ev => {
    ev.preventDefault();
    if (ev.ctrlKey || ev.metaKey) { zoom(Math.pow(1.0025, ev.deltaY), at(ev.offsetX)); return; }
    if (Math.abs(ev.deltaX) > Math.abs(ev.deltaY) || ev.shiftKey) {
      const d = (ev.deltaX || ev.deltaY) / (view.clientWidth - LABEL) * (T1 - T0);
      show(T0 + d, T1 + d);
    } else if (layout().height > view.clientHeight) move(ev.deltaY);
    else zoom(Math.pow(1.0015, ev.deltaY), at(ev.offsetX));
  }, {passive: false});
  view.addEventListener('pointerdown', ev => { drag = {x: ev.clientX, y: ev.clientY, T0, T1, scroll}; moved = false; view.setPointerCapture(ev.pointerId); });
  view.addEventListener('pointermove', ev => {
    hover = {x: ev.offsetX, y: ev.offsetY};
    if (drag) {
      const dx = ev.clientX - drag.x;
      if (Math.abs(dx) + Math.abs(ev.clientY - drag.y) > 3) moved = true;
      const d = -dx / (view.clientWidth - LABEL) * (drag.T1 - drag.T0);
      if (moved) { show(drag.T0 + d, drag.T1 + d); scroll = drag.scroll; move(drag.y - ev.clientY); }
      return;
    }
    const h = hit(ev.offsetX, ev.offsetY), tip = $('tip');
    tip.hidden = !h;
    if (h) {
      const one = h.r.id[h.i] !== NONE;
      tip.textContent = (one ? [meta.kinds[h.r.kind[h.i]], names.get(h.r.id[h.i])].filter(Boolean).join('  ') : 'several events, zoom in') + '\n' +
        time(h.r.t0[h.i]) + ', ' + time(h.r.t1[h.i] - h.r.t0[h.i]) +
        (one && h.r.cause[h.i] ? '\nheld by: ' + meta.causes[h.r.cause[h.i] - 1] : '');
      tip.style.left = Math.min(ev.offsetX + 14, view.clientWidth - tip.offsetWidth - 4) + 'px';
      tip.style.top = Math.min(ev.offsetY + 14, view.clientHeight - tip.offsetHeight - 4) + 'px';
    }
  });
  view.addEventListener('pointerup', ev => {
    drag = null;
    if (moved) return;
    const h = hit(ev.offsetX, ev.offsetY);
    if (!h) deselect();
    else if (h.r.id[h.i] === NONE) zoom(.2, at(ev.offsetX));
    else select(h.s, h.r.id[h.i], false);
  });
  view.addEventListener('pointerleave', () => { hover = null; $('tip').hidden = true; });
  let mapDrag = false;
  const jump = ev => {
    const t = (ev.offsetX - LABEL) / (map.clientWidth - LABEL) * span, w = T1 - T0;
    show(t - w / 2, t + w / 2);
  };
  map.addEventListener('pointerdown', ev => { mapDrag = true; map.setPointerCapture(ev.pointerId); jump(ev); });
  map.addEventListener('pointermove', ev => { if (mapDrag) jump(ev); });
  map.addEventListener('pointerup', () => { mapDrag = false; });
  addEventListener('keydown', keys);
  addEventListener('resize', () => { redraw(); load(); });
  let wait = 0;
  $('search').addEventListener('input', ev => { clearTimeout(wait); const q = ev.target.value; wait = setTimeout(() => search(q), 120); });
  $('fit').onclick = () => show(-span * .01, span * 1.01);
  $('critical').onclick = () => { marks = !marks; $('critical').setAttribute('aria-pressed', marks); redraw(); };
  $('theme').onclick = () => theme();
  $('help').onclick = () => { $('keys').hidden = !$('keys').hidden; };
}

function fromLink() {
  const p = new URLSearchParams(location.hash.slice(1));
  const t0 = parseFloat(p.get('t0')), t1 = parseFloat(p.get('t1'));
  if (p.get('show')) { shown = p.get('show').split(',').map(Number).filter(s => s < meta.sections.length); buttons(); }
  if (t0 < t1) show(t0, t1); else show(-span * .01, span * 1.01);
  const m = /^(\d+):(\d+)$/.exec(p.get('sel') || '');
  if (m) select(+m[1], +m[2], false);
}

async function start() {
  view = $('view');
  map = $('map');
  g = view.getContext('2d', {alpha: false});
  mg = map.getContext('2d', {alpha: false});
  theme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  const data = $('data');
  src = data ? new Local(data.textContent.trim()) : new Remote();
  meta = await src.meta();
  document.title = meta.title + ' – perfsim';
  $('title').textContent = meta.title;
  for (const f of meta.facts) {
    const d = document.createElement('div');
    d.append(text('dt', f.name), text('dd', f.value));
    $('facts').append(d);
  }
  if (meta.blocks) {
    const box = document.createElement('details'), list = document.createElement('ol');
    box.append(text('summary', meta.blocks.length + ' blocks'), list);
    for (const b of meta.blocks) list.append(text('li', b.name + ': ' + b.value));
    $('facts').after(box);
  }
  const used = new Set(meta.occurring.filter(c => c !== 'lane' && c !== 'start')); // those leave no idle time
  for (const [c, col] of Object.entries(CAUSES)) {
    if (!used.has(c)) continue;
    const s = text('span', c), i = document.createElement('i');
    i.style.background = col;
    s.prepend(i);
    $('legend').append(s);
  }
  if (used.size) $('legend').prepend(text('span', 'idle before an event, by cause:'));
  const path = text('span', 'critical path'), bar = document.createElement('i');
  bar.className = 'bar';
  path.prepend(bar);
  $('legend').prepend(path);
  span = Math.max(1, ...meta.sections.map(s => s.span));
  shown = meta.sections.map((_, i) => i).filter(i => !meta.sections[i].folded);
  usual = shown.slice();
  tiles = meta.sections.map(() => null);
  $('empty').hidden = meta.events > 0;
  buttons();
  listen();
  key();
  fromLink();
  addEventListener('hashchange', fromLink);
  view.focus();
}
start().catch(e => { document.getElementById('status').textContent = 'perfsim does not answer: ' + e.message; });
})();
