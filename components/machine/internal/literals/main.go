// Command literals writes components/machine/builtin*.go: the embedded YAML
// descriptions as Go values, which need no parsing at the start of a command.
// `go generate ./components/machine` runs it.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"maps"
	"os"
	"reflect"
	"slices"

	"perfsim/components/machine"
)

// header begins every file that is written.
const header = "// Code generated from the YAML files by internal/literals; DO NOT EDIT.\n\n//go:build !nobuiltin\n\npackage machine\n\n"

func main() {
	var list bytes.Buffer
	list.WriteString(header + "// builtin returns the embedded description of a name or an alias, nil for\n// none.\n" +
		"func builtin(name string) *Machine {\n\tswitch name {\n")
	for _, n := range machine.Names() {
		text, err := machine.Text(n)
		if err != nil {
			log.Fatal(err)
		}
		m, err := machine.Parse(n+".yaml", text)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(&list, "case %q", n)
		for _, a := range m.Aliases {
			fmt.Fprintf(&list, ", %q", a)
		}
		fmt.Fprintf(&list, ":\n\t\treturn %s()\n", n)
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s// %s is %s.yaml.\nfunc %s() *Machine {\n\treturn &", header, n, n, n)
		literal(&b, reflect.ValueOf(*m), true)
		b.WriteString("\n}\n")
		write("builtin_"+n+".go", b.Bytes())
	}
	list.WriteString("\t}\n\treturn nil\n}\n")
	write("builtin.go", list.Bytes())
}

// write formats the text of a Go file and writes it.
func write(name string, text []byte) {
	src, err := format.Source(text)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(name, src, 0o644); err != nil {
		log.Fatal(err)
	}
}

// literal writes v as a Go expression. Fields that are zero are left out, and
// so is the type where the context has it.
func literal(b *bytes.Buffer, v reflect.Value, named bool) {
	if named {
		switch v.Kind() {
		case reflect.Struct:
			b.WriteString(v.Type().Name())
		case reflect.Slice, reflect.Map:
			b.WriteString(typeName(v.Type()))
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		b.WriteString("{")
		lines := v.NumField() > 0 && v.Type().Size() > 200
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue
			}
			if lines {
				b.WriteString("\n")
			}
			b.WriteString(v.Type().Field(i).Name + ": ")
			literal(b, v.Field(i), true)
			b.WriteString(", ")
		}
		if lines {
			b.WriteString("\n")
		}
		b.WriteString("}")
	case reflect.Slice:
		b.WriteString("{")
		for i := range v.Len() {
			b.WriteString("\n")
			literal(b, v.Index(i), false)
			b.WriteString(",")
		}
		b.WriteString("\n}")
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.Interface {
			log.Fatalf("a built-in description with %s cannot be written yet", v.Type())
		}
		entries := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			entries[k.String()] = v.MapIndex(k)
		}
		b.WriteString("{")
		for _, k := range slices.Sorted(maps.Keys(entries)) {
			fmt.Fprintf(b, "\n%q: ", k)
			literal(b, entries[k], false)
			b.WriteString(",")
		}
		b.WriteString("\n}")
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	default:
		fmt.Fprint(b, v.Interface())
	}
}

// typeName is the type as the machine package writes it.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Map:
		return "map[" + typeName(t.Key()) + "]" + typeName(t.Elem())
	}
	return t.Name()
}
