package neff

import (
	"strconv"
	"strings"

	"perfsim/components"
)

// DebugLayer is a level of the program that debug information belongs to: the
// documented IRLayer.
type DebugLayer uint8

// The layers and their numbers.
const (
	LayerFramework DebugLayer = iota // debug_info_pttf: the trace package goes here
	LayerHLO
	LayerPenguin
	LayerBackend
	LayerASM
	numLayers
)

var layerTags = [numLayers]string{"debug_info_pttf", "debug_info_hlo", "debug_info_penguin", "debug_info_backend", "debug_info_asm"}

// String returns the tag, what the names of the layer's members begin with;
// "unknown" for a layer that does not exist, as documented.
func (l DebugLayer) String() string {
	if l < numLayers {
		return layerTags[l]
	}
	return "unknown"
}

// NoCounter leaves the counter out of a member name.
const NoCounter = -1

// DebugName is the name of a debug information member, in its parts.
type DebugName struct {
	Layer   DebugLayer
	Engine  components.Engine // Unassigned for the whole module
	Counter int               // NoCounter if there is one file only
	Ext     string            // without its dot; may be empty
}

// String is the one producer of all debug_info_* names: the tag, the engine
// after an underscore, counter and extension after dots, each only if there is
// one. Files of the compiler are named so: debug_info_backend_PE.dbg in the
// folder of the core, sg00. The trace package, which has no part but the tag,
// is "debug_info_pttf".
func (n DebugName) String() string {
	s := n.Layer.String()
	if n.Engine != components.Unassigned {
		s += "_" + n.Engine.String()
	}
	if n.Counter >= 0 {
		s += "." + strconv.Itoa(n.Counter)
	}
	if n.Ext != "" {
		s += "." + n.Ext
	}
	return s
}

// PTTFName returns the name of the member that holds the trace package,
// "debug_info_pttf".
func PTTFName() string { return DebugName{Layer: LayerFramework, Counter: NoCounter}.String() }

// ParseDebugName takes the name of a member, with or without folders, apart.
// Engine and counter may stand after underscores, as compilers write them
// (debug_info_asm_PE_0.dbg), or after dots, as one description has them. ok is
// false for members that are not debug information.
func ParseDebugName(name string) (n DebugName, ok bool) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	n.Counter = NoCounter
	for l, tag := range layerTags {
		rest, found := strings.CutPrefix(base, tag)
		if !found || rest != "" && rest[0] != '.' && rest[0] != '_' {
			continue
		}
		n.Layer = DebugLayer(l)
		if word, more := nextWord(rest); word != "" {
			// After a dot the file spelling only: "dma" is an extension there.
			if e, is := components.ParseEngine(word); is && (rest[0] == '_' || e != components.Unassigned && e.String() == word) {
				n.Engine, rest = e, more
			}
		}
		if word, more := nextWord(rest); word != "" {
			if c, err := strconv.Atoi(word); err == nil && c >= 0 && strconv.Itoa(c) == word {
				n.Counter, rest = c, more
			}
		}
		n.Ext = strings.TrimLeft(rest, "._")
		return n, true
	}
	return DebugName{}, false
}

// nextWord splits "_PE.0.dbg" behind its first word, which a dot or an
// underscore begins.
func nextWord(s string) (word, rest string) {
	if s == "" {
		return "", ""
	}
	end := strings.IndexAny(s[1:], "._")
	if end < 0 {
		return s[1:], ""
	}
	return s[1 : 1+end], s[1+end:]
}
