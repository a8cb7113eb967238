package core_test

import (
	"strings"
	"testing"

	"tutti/internal/core"
)

func TestTooDeep(t *testing.T) {
	for text, deep := range map[string]bool{
		"":                                  false,
		`{"a":[{"b":1}]}`:                   false,
		`[[[[`:                              true,
		`[[[`:                               false,
		`{"a":{"b":{"c":{}}}}`:              true,
		`[[],[[]],[],[[]]]`:                 false,
		`{"a":"[[[[[["}`:                    false,
		`{"a":"\"[[[[[["}`:                  false,
		`["\\",[[[`:                         true,
		strings.Repeat("[]", 1000):          false,
		strings.Repeat(`{"a":`, 10_000_000): true,
	} {
		if got := core.TooDeep([]byte(text), 3); got != deep {
			t.Errorf("%.40s: %t, want %t", text, got, deep)
		}
	}
}
