package output

import (
	"bytes"
	"math"
	"strconv"

	"tutti/internal/jsontext"
)

// TimeLayout is the format of times.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// appendNumber appends a JSON number, null for infinities and NaN.
func appendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return append(dst, PlainNumber(f)...)
}

// PlainNumber formats a number as JavaScript does, except that -0 is 0.
func PlainNumber(f float64) string {
	if f == 0 {
		return "0"
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

// maxSafeInteger is the largest integer that JavaScript represents exactly, together with all smaller ones.
const maxSafeInteger = 1<<53 - 1

// UnsafeInteger reports whether a value is an integer that JavaScript would round.
func UnsafeInteger(raw []byte) bool {
	if len(raw) < 16 || !jsontext.IsNumber(raw) || bytes.ContainsAny(raw, ".eE") {
		return false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err != nil || n > maxSafeInteger || n < -maxSafeInteger
}
