package deadletter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"

	"tutti/internal/core"
)

// TestStoredDocuments: the document of a record is stored packed where that is shorter, that of a message as it is; a dead letter of an
// earlier version is read as well.
func TestStoredDocuments(t *testing.T) {
	long := []byte(`{"files":[` + strings.Repeat(`{"fileType":"VCF"},`, 500) + `{}]}`)
	for _, test := range []struct {
		name   string
		letter core.DeadLetter
		packed bool
	}{
		{"long", core.DeadLetter{RecordID: "A", Document: long}, true},
		{"largest", core.DeadLetter{RecordID: "A", Document: []byte(strings.Repeat(" ", core.MaxDeadLetterBytes))}, true},
		{"short", core.DeadLetter{RecordID: "A", Document: []byte(`{"a":1}`)}, false},
		{"none", core.DeadLetter{RecordID: "A"}, false},
		{"message", core.DeadLetter{Source: "webhook", Document: long}, false},
	} {
		data, err := encode(test.letter, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(test.letter)
		if err != nil {
			t.Fatal(err)
		}
		if packed := 5*len(data) < len(plain); packed != test.packed || !packed && string(data) != string(plain) {
			t.Errorf("%s: %d bytes, plain %d", test.name, len(data), len(plain))
		}
		for _, of := range [][]byte{data, plain} {
			if got, err := unpack(of); err != nil || cmp.Diff(test.letter, got) != "" {
				t.Errorf("%s: %v %s", test.name, err, cmp.Diff(test.letter, got))
			}
		}
	}
	over, err := json.Marshal(stored{Packed: s2.Encode(nil, make([]byte, core.MaxDeadLetterBytes+1))})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{`{"packed":"!"}`, `{"packed":"AAAA"}`, string(over)} {
		if _, err := unpack([]byte(data)); core.CodeOf(err) != core.CodeInternal {
			t.Errorf("%.30s: %v", data, err)
		}
	}
}
