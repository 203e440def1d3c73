package neff

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
)

// HeaderSize is the size of the header, the only one known.
const HeaderSize = 1024

// Offsets of the header's fields, in bytes. All numbers are little endian.
const (
	offPkgVersion   = 0x000
	offHeaderSize   = 0x008
	offDataSize     = 0x010
	offVersionMajor = 0x018
	offVersionMinor = 0x020
	offBuildVersion = 0x028
	offNumTPB       = 0x0A8
	offHash         = 0x0AC
	offUUID         = 0x0CC
	offName         = 0x0DC
	offRequestedTPB = 0x1DC
	offTPBPerNode   = 0x1E0
	offFeatureBits  = 0x220
	offLNCSize      = 0x228
	offPad          = 0x22C
)

// Header is the header of a NEFF. Text fields end at their first NUL.
type Header struct {
	PkgVersion   uint64 // 1: plain tar and SHA-256; 2: gzipped tar and MD5
	HeaderSize   uint64 // 1024
	DataSize     uint64 // bytes of the payload, as stored
	VersionMajor uint64 // of the NEFF; loaders refuse more than 2
	VersionMinor uint64
	BuildVersion [128]byte
	NumTPB       uint32
	Hash         [32]byte // of the payload; see PayloadHash
	UUID         [16]byte
	Name         [256]byte
	RequestedTPB uint32
	TPBPerNode   [64]byte // one count for each kelf node
	FeatureBits  uint64
	LNCSize      uint32 // logical cores: how many physical cores make one
	Pad          [468]byte
}

// parseHeader reads the first 1024 bytes of a NEFF.
func parseHeader(b []byte) (Header, error) {
	var h Header
	if len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b {
		return h, errors.New("begins with gzip data: a NEFF begins with a header of 1024 bytes")
	}
	if len(b) < HeaderSize {
		return h, fmt.Errorf("%d bytes are too few for the header of %d", len(b), HeaderSize)
	}
	le := binary.LittleEndian
	h.PkgVersion = le.Uint64(b[offPkgVersion:])
	h.HeaderSize = le.Uint64(b[offHeaderSize:])
	h.DataSize = le.Uint64(b[offDataSize:])
	h.VersionMajor = le.Uint64(b[offVersionMajor:])
	h.VersionMinor = le.Uint64(b[offVersionMinor:])
	copy(h.BuildVersion[:], b[offBuildVersion:])
	h.NumTPB = le.Uint32(b[offNumTPB:])
	copy(h.Hash[:], b[offHash:])
	copy(h.UUID[:], b[offUUID:])
	copy(h.Name[:], b[offName:])
	h.RequestedTPB = le.Uint32(b[offRequestedTPB:])
	copy(h.TPBPerNode[:], b[offTPBPerNode:])
	h.FeatureBits = le.Uint64(b[offFeatureBits:])
	h.LNCSize = le.Uint32(b[offLNCSize:])
	copy(h.Pad[:], b[offPad:HeaderSize])
	if h.HeaderSize != HeaderSize {
		return h, fmt.Errorf("no NEFF: the header size at byte 8 is %d, not %d", h.HeaderSize, HeaderSize)
	}
	return h, nil
}

// Bytes returns the 1024 bytes of the header.
func (h *Header) Bytes() []byte {
	b := make([]byte, HeaderSize)
	le := binary.LittleEndian
	le.PutUint64(b[offPkgVersion:], h.PkgVersion)
	le.PutUint64(b[offHeaderSize:], h.HeaderSize)
	le.PutUint64(b[offDataSize:], h.DataSize)
	le.PutUint64(b[offVersionMajor:], h.VersionMajor)
	le.PutUint64(b[offVersionMinor:], h.VersionMinor)
	copy(b[offBuildVersion:], h.BuildVersion[:])
	le.PutUint32(b[offNumTPB:], h.NumTPB)
	copy(b[offHash:], h.Hash[:])
	copy(b[offUUID:], h.UUID[:])
	copy(b[offName:], h.Name[:])
	le.PutUint32(b[offRequestedTPB:], h.RequestedTPB)
	copy(b[offTPBPerNode:], h.TPBPerNode[:])
	le.PutUint64(b[offFeatureBits:], h.FeatureBits)
	le.PutUint32(b[offLNCSize:], h.LNCSize)
	copy(b[offPad:], h.Pad[:])
	return b
}

// SetName stores a name, which must leave room for its NUL.
func (h *Header) SetName(s string) error { return setText(h.Name[:], "name", s) }

// SetBuildVersion stores the version text of the build.
func (h *Header) SetBuildVersion(s string) error {
	return setText(h.BuildVersion[:], "build version", s)
}

func setText(dst []byte, what, s string) error {
	if len(s) >= len(dst) || bytes.IndexByte([]byte(s), 0) >= 0 {
		return fmt.Errorf("%s %.40q does not fit %d bytes", what, s, len(dst)-1)
	}
	clear(dst)
	copy(dst, s)
	return nil
}

// Text returns a text field up to its NUL.
func Text(field []byte) string {
	if i := bytes.IndexByte(field, 0); i >= 0 {
		field = field[:i]
	}
	return string(field)
}

// FormatUUID returns a UUID in its usual form.
func FormatUUID(u [16]byte) string {
	x := hex.EncodeToString(u[:])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}

// newHash returns the hash of a package version.
func newHash(pkgVersion uint64) (hash.Hash, error) {
	switch pkgVersion {
	case 1:
		return sha256.New(), nil
	case 2:
		return md5.New(), nil
	}
	return nil, fmt.Errorf("package version %d is not known: its hash is neither that of 1 nor of 2", pkgVersion)
}

// hashField makes the header's hash field of a sum, as compilers store it: the
// bytes of each 32-bit word of an MD5 reversed, NULs behind it. SHA-256 fills
// the field as it is.
func hashField(sum []byte) (field [32]byte) {
	copy(field[:], sum)
	if len(sum) == md5.Size {
		copy(field[:], reversedWords(sum))
	}
	return field
}

// reversedWords returns a sum with the bytes of each 32-bit word reversed.
func reversedWords(sum []byte) []byte {
	out := bytes.Clone(sum)
	for w := out; len(w) >= 4; w = w[4:] {
		slices.Reverse(w[:4])
	}
	return out
}

// newerFeatures are the feature bits that no loader of major version 2 knows.
const newerFeatures = 0x7FFFFFFFF8000000

// LoaderComplaints returns the documented reasons for which a loader would
// refuse this header. That the payload may be shorter than DataSize is for
// Open to see.
func (h *Header) LoaderComplaints() []string {
	var out []string
	if h.VersionMajor > 2 {
		out = append(out, fmt.Sprintf("major version %d is greater than 2", h.VersionMajor))
	}
	if bits := h.FeatureBits & newerFeatures; h.VersionMajor == 2 && bits != 0 {
		out = append(out, fmt.Sprintf("unknown feature bits %#x", bits))
	}
	return out
}

// features are the documented feature bits.
var features = []struct {
	bit  uint64
	name string
}{
	{0x2, "collective_has_offset"}, {0x4, "custom_ops"}, {0x8, "coalesced_ccops"}, {0x10, "queue_set_instances"},
	{0x20, "has_functions"}, {0x40, "dynamic_pwp"}, {0x80, "indirect_memcpy_32b_sem_wait"},
	{0x100, "indirect_memcpy_bound_check"}, {0x200, "DMA_desc_higher_dim"}, {0x400, "vnc"}, {0x800, "DVE_perf_mode"},
	{0x1000, "DGE"}, {0x2000, "POOL_RSQRT"}, {0x4000, "remote_sem"}, {0x8000, "DGE_cast"}, {0x10000, "vector_DGE"},
	{0x20000, "embedding_stride32"}, {0x100000, "SQI_no_rearm"}, {0x200000, "hardware_DGE"},
	{0x400000, "partial_sb2sb_ccop"}, {0x1000000, "arch_over_39"}, {0x2000000, "large_tensor_support"},
}

// Features returns the names of the feature bits that are set; a bit without
// a public name is named by its value.
func (h *Header) Features() []string {
	var out []string
	for bits := h.FeatureBits; bits != 0; bits &= bits - 1 {
		bit := bits & -bits
		name := fmt.Sprintf("%#x", bit)
		for _, f := range features {
			if f.bit == bit {
				name = f.name
			}
		}
		out = append(out, name)
	}
	return out
}
