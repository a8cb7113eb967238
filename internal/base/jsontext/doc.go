// Package jsontext reads JSON texts without decoding them: Value, Members, Elements and Items find values in texts that are known to be valid,
// ScanString, ScanNumber and Escape check the syntax of single tokens, and AppendUnescaped and AppendString convert strings. Invalid
// texts are never read out of bounds.
package jsontext
