package core

import "strings"

// Pointer returns the JSON pointer (RFC 6901) of the member called name of what parent points at; "" is the whole.
func Pointer(parent, name string) string { return parent + "/" + pointerToken(name) }

// AppendPointer appends to a JSON pointer what makes it that of the member called name.
func AppendPointer(dst []byte, name string) []byte {
	return append(append(dst, '/'), pointerToken(name)...)
}

// pointerToken escapes a name for a pointer. Most need nothing, and cost nothing.
func pointerToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
