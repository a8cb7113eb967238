// Package jsontext reads JSON texts without decoding them: Value, Members, Elements and Items find values in texts that are known to be valid,
// ScanString, ScanNumber and Escape check the syntax of single tokens, AppendUnescaped and AppendString convert strings, and Pointer
// and AppendPointer make JSON pointers. Invalid texts are never read out of bounds.
package jsontext
