package serve

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"perfsim/systems"
)

// held is the modules that are kept, the one asked for least recently first to
// go.
type held struct {
	mu      sync.Mutex
	limit   int64
	bytes   int64
	order   *list.List // of *heldModule, the last asked for in front
	byID    map[string]*list.Element
	evicted uint64
}

// heldModule is an input and the modules made from it.
type heldModule struct {
	id, name string
	body     []byte
	source   string // kernel source to execute, in place of body

	mu       sync.Mutex
	variants map[string]*systems.Loaded // by what loading depends on
	counted  int64                      // bytes, as held counts it; under its lock
}

// size returns the memory that the module takes.
func (m *heldModule) size() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := int64(len(m.body)) + fixedBytes
	for _, l := range m.variants {
		n += l.Bytes() + fixedBytes
	}
	return n
}

func newHeld(limit int64) *held {
	return &held{limit: limit, order: list.New(), byID: map[string]*list.Element{}}
}

// digest returns the id of an input.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// get returns the module with the given id, nil where none is held.
func (h *held) get(id string) *heldModule {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byID[id]
	if e == nil {
		return nil
	}
	h.order.MoveToFront(e)
	return e.Value.(*heldModule)
}

// put holds m as the one that was asked for last. Others go to make room, m too
// where it is larger than all there is.
func (h *held) put(m *heldModule) {
	size := m.size()
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byID[m.id]
	if e != nil && e.Value != m { // another request was faster
		h.drop(e)
		e = nil
	}
	if e == nil {
		e = h.order.PushFront(m)
		h.byID[m.id] = e
	}
	h.order.MoveToFront(e)
	h.bytes += size - m.counted
	m.counted = size
	for h.bytes > h.limit {
		h.drop(h.order.Back())
		h.evicted++
	}
}

// fixedBytes is about what a held module takes in addition to its tables.
const fixedBytes = 4096

// drop forgets an entry. The caller holds the lock.
func (h *held) drop(e *list.Element) {
	m := h.order.Remove(e).(*heldModule)
	delete(h.byID, m.id)
	h.bytes -= m.counted
	m.counted = 0
}

// clear forgets all modules.
func (h *held) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.evicted += uint64(h.order.Len())
	for h.order.Len() > 0 {
		h.drop(h.order.Back())
	}
}

// count returns how many modules are held, their bytes, and how many had to
// go.
func (h *held) count() (modules int, bytes int64, evicted uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.order.Len(), h.bytes, h.evicted
}

// variant returns the module made under key, nil where there is none.
func (m *heldModule) variant(key string) *systems.Loaded {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.variants[key]
}

// keep holds the module made under key.
func (m *heldModule) keep(key string, l *systems.Loaded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.variants == nil {
		m.variants = map[string]*systems.Loaded{}
	}
	m.variants[key] = l
}
