package jsontext

import "strings"

// Pointer returns the JSON pointer (RFC 6901) of the member name of the value at parent; "" is the whole document.
func Pointer(parent, name string) string { return parent + "/" + pointerToken(name) }

// AppendPointer appends the reference token of the member name to a JSON pointer.
func AppendPointer(dst []byte, name string) []byte {
	return append(append(dst, '/'), pointerToken(name)...)
}

// pointerToken escapes a name for a JSON pointer.
func pointerToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
