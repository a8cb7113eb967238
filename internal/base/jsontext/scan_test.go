package jsontext_test

import (
	"testing"

	"tutti/internal/base/jsontext"
)

func TestScanString(t *testing.T) {
	for text, want := range map[string]struct {
		end     int
		escaped bool
		state   jsontext.State
	}{
		`"" `:                    {2, false, jsontext.Valid},
		`"a"b"`:                  {3, false, jsontext.Valid},
		`"12345678\"9"`:          {13, true, jsontext.Valid},
		`"\u00e9\/\ud83d\ude00"`: {22, true, jsontext.Valid},
		`"\ud83d\u0041"`:         {14, true, jsontext.Valid},
		`"12345678`:              {9, false, jsontext.Incomplete},
		`"a\`:                    {2, true, jsontext.Incomplete},
		`"a\u12`:                 {2, true, jsontext.Incomplete},
		`"\ud83d\ude`:            {7, true, jsontext.Incomplete},
		`"a\u12x4"`:              {2, true, jsontext.Invalid},
		`"\n\x"`:                 {3, true, jsontext.Invalid},
		"\"123456\x1f8\"":        {7, false, jsontext.Invalid},
		"\"1234567890123456\n\"": {17, false, jsontext.Invalid},
		"\"\x7f\xff\u00e9\"":     {6, false, jsontext.Valid},
		"\"1234567\x7f\u65e5\u672c\u8a9e\u306e\" ": {22, false, jsontext.Valid},
	} {
		for _, before := range []string{"", "[1,"} {
			end, escaped, state := jsontext.ScanString([]byte(before+text), len(before))
			if end-len(before) != want.end || escaped != want.escaped || state != want.state {
				t.Errorf("%s%s: %d, %t, %d; want %+v", before, text, end-len(before), escaped, state, want)
			}
		}
	}
}

func TestScanNumber(t *testing.T) {
	for text, want := range map[string]struct {
		end     int
		integer bool
		state   jsontext.State
	}{
		"0":         {1, true, jsontext.Valid},
		"-12,":      {3, true, jsontext.Valid},
		"01":        {1, true, jsontext.Valid},
		"1.50E+07]": {8, false, jsontext.Valid},
		"1e5.2":     {3, false, jsontext.Valid},
		"":          {0, true, jsontext.Incomplete},
		"-":         {1, true, jsontext.Incomplete},
		"1.":        {2, false, jsontext.Incomplete},
		"1e-":       {3, false, jsontext.Incomplete},
		"-x":        {1, true, jsontext.Invalid},
		".5":        {0, true, jsontext.Invalid},
		"1.e5":      {2, false, jsontext.Invalid},
		"2e}":       {2, false, jsontext.Invalid},
		"NaN":       {0, true, jsontext.Invalid},
	} {
		if end, integer, state := jsontext.ScanNumber(text, 0); end != want.end || integer != want.integer || state != want.state {
			t.Errorf("%s: %d, %t, %d; want %+v", text, end, integer, state, want)
		}
	}
}
