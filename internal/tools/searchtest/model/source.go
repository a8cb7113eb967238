package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"tutti/internal/index"
)

// DiffSource returns how a source differs from that of the document, in the requested part.
func DiffSource(source []byte, document string, ask index.Source) string {
	if ask.None {
		if source != nil {
			return "a source that was not requested"
		}
		return ""
	}
	got, err := decoded(source)
	if err != nil {
		return fmt.Sprintf("the source is no JSON: %v: %.200s", err, source)
	}
	want, err := decoded([]byte(document))
	if err != nil {
		return err.Error()
	}
	if ask.Paths == nil && !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("the source is %s\nnot %s", source, document)
	}
	for _, path := range ask.Paths {
		segments := strings.Split(path, ".")
		if a, b := scalarsAt(got, segments), scalarsAt(want, segments); !slices.Equal(a, b) {
			return fmt.Sprintf("at %s the source %s\nhas %q, not %q", path, source, a, b)
		}
	}
	return ""
}

// decoded parses JSON, keeping numbers as written.
func decoded(raw []byte) (any, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&v)
	return v, err
}

// scalarsAt returns all scalars at or below a path, in order.
func scalarsAt(v any, segments []string) []string {
	var out []string
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			out = append(out, scalarsAt(member, segments)...)
		}
	case map[string]any:
		if len(segments) > 0 {
			return scalarsAt(v[segments[0]], segments[1:])
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, scalarsAt(v[name], nil)...)
		}
	case nil:
	default:
		if len(segments) == 0 {
			out = append(out, scalarText(v))
		}
	}
	return out
}

// scalarText returns a canonical text of a scalar: an engine that filters sources may change the format of numbers.
func scalarText(v any) string {
	if n, is := v.(json.Number); is {
		if x, ok := new(big.Rat).SetString(n.String()); ok {
			return x.RatString()
		}
	}
	return fmt.Sprint(v)
}
