package main

import (
	_ "github.com/RoaringBitmap/roaring/v2"
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/dustin/go-humanize"
	_ "github.com/fxamacker/cbor/v2"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/klauspost/pgzip"
	_ "github.com/parquet-go/parquet-go"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/valyala/fastjson"
	_ "github.com/vbauerster/mpb/v8"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
	_ "golang.org/x/sys/unix"
	_ "google.golang.org/protobuf/encoding/protowire"
	_ "pgregory.net/rapid"
)

func main() {}
