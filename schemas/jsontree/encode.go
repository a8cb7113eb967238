package jsontree

import (
	"bytes"
	"encoding/json"
)

// AppendJSON appends v as JSON. It does not escape <, > and &, because responses are never interpreted as HTML.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), nil
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	dst, _ = AppendJSON(dst, s) // a string always marshals
	return dst
}
