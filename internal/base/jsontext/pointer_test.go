package jsontext_test

import (
	"fmt"
	"testing"

	"tutti/internal/base/jsontext"
)

func TestPointer(t *testing.T) {
	for name, tt := range map[string]struct{ parent, name, want string }{
		"of the whole":             {"", "a", "/a"},
		"below":                    {"/a/0", "b", "/a/0/b"},
		"no name":                  {"/a", "", "/a/"},
		"a slash":                  {"", "a/b", "/a~1b"},
		"a tilde":                  {"", "a~b", "/a~0b"},
		"what looks escaped":       {"", "~1~0/", "/~01~00~1"},
		"the parent stays":         {"/a~1b", "c", "/a~1b/c"},
		"quotes, spaces and runes": {"", "\" é\x00", "/\" é\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := jsontext.Pointer(tt.parent, tt.name); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if got := string(jsontext.AppendPointer([]byte(tt.parent), tt.name)); got != tt.want {
				t.Errorf("appended it is %q, want %q", got, tt.want)
			}
		})
	}
}

func ExamplePointer() {
	fmt.Println(jsontext.Pointer(jsontext.Pointer("", "paths"), "/studies/{id}"))
	// Output: /paths/~1studies~1{id}
}
