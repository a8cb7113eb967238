package equality_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tutti/internal/base/equality"
)

func TestEqual(t *testing.T) {
	rules := equality.New([]string{"files.*", "samples.*", "donors", "donors.specimens", "data.**"}, "updatedAt", "analysis.updatedAt")
	for name, test := range map[string]struct {
		a, b string
		want bool
	}{
		"order of members, white space, escapes": {`{"a":1,"b\u0041":"\u00e9\/"}`, ` {"bA" : "é/", "a":1} `, true},
		"a number is as it is written":           {`{"a":1}`, `{"a":1.0}`, false},
		"the last member of a name counts":       {`{"a":1,"a":2}`, `{"a":2}`, true},
		"a missing member":                       {`{"a":null}`, `{}`, false},
		"an array of objects":                    {`{"files":[{"a":1},{"b":2,"c":3}]}`, `{"files":[{"c":3,"b":2},{"a":1}]}`, true},
		"one more":                               {`{"files":[{"a":1},{"a":1},{"b":1}]}`, `{"files":[{"a":1},{"b":1},{"b":1}]}`, false},
		"an element changed":                     {`{"files":[{"a":1},{"b":2}]}`, `{"files":[{"b":2},{"a":2}]}`, false},
		"values":                                 {`{"files":["a","b"]}`, `{"files":["b","a"]}`, false},
		"objects and values":                     {`{"files":[{"a":1},1]}`, `{"files":[1,{"a":1}]}`, false},
		"values below":                           {`{"files":[{"a":[1,2]}]}`, `{"files":[{"a":[2,1]}]}`, false},
		"objects below":                          {`{"samples":[{"d":{"x":[{"i":1},{"i":2}]}}]}`, `{"samples":[{"d":{"x":[{"i":2},{"i":1}]}}]}`, true},
		"objects two levels below":               {`{"samples":[{"x":[{"y":[{"i":1},{"i":2}]},{}]}]}`, `{"samples":[{"x":[{},{"y":[{"i":2},{"i":1}]}]}]}`, true},
		"below info":                             {`{"files":[{"info":{"x":[{"i":1},{"i":2}]}}]}`, `{"files":[{"info":{"x":[{"i":2},{"i":1}]}}]}`, false},
		"info itself":                            {`{"files":[{"info":[{"i":1},{"i":2}]}]}`, `{"files":[{"info":[{"i":2},{"i":1}]}]}`, false},
		"far below info":                         {`{"samples":[{"d":{"info":{"y":{"x":[{"i":1},{}]}}}}]}`, `{"samples":[{"d":{"info":{"y":{"x":[{},{"i":1}]}}}}]}`, false},
		"below experiment":                       {`{"samples":[{"experiment":{"x":[{"i":1},{}]}}]}`, `{"samples":[{"experiment":{"x":[{},{"i":1}]}}]}`, false},
		"elsewhere":                              {`{"experiment":{"files":[{"i":1},{}]}}`, `{"experiment":{"files":[{},{"i":1}]}}`, false},
		"exactly these":                          {`{"donors":[{"specimens":[{"i":1},{}]},{}]}`, `{"donors":[{},{"specimens":[{},{"i":1}]}]}`, true},
		"below exactly these":                    {`{"donors":[{"x":[{"i":1},{}]}]}`, `{"donors":[{"x":[{},{"i":1}]}]}`, false},
		"below all":                              {`{"data":{"info":[{"experiment":[{"i":1},{}]},{}]}}`, `{"data":{"info":[{},{"experiment":[{},{"i":1}]}]}}`, true},
		"values below all":                       {`{"data":{"info":[{"i":[1,2]},{}]}}`, `{"data":{"info":[{},{"i":[2,1]}]}}`, false},
		"left out":                               {`{"updatedAt":1,"analysis":{"updatedAt":2,"x":1}}`, `{"analysis":{"x":1}}`, true},
		"left out only there":                    {`{"x":{"updatedAt":1}}`, `{"x":{}}`, false},
		"hashes are no text":                     {`{"files":[{"a":1},{"b":2}]}`, `{"files":["{\"a\":1}","{\"b\":2}"]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rules.Equal([]byte(test.a), []byte(test.b)); got != test.want {
				t.Errorf("%v", got)
			}
			if got := rules.Sum([]byte(test.a)) == rules.Sum([]byte(test.b)); got != test.want {
				t.Errorf("sums: %v", got)
			}
		})
	}
}

func TestEqualWhereStored(t *testing.T) {
	rules := equality.New([]string{"files.*"})
	for name, test := range map[string]struct {
		stored, document string
		want             bool
	}{
		"the same":                   {`{"a":1}`, `{"a":1}`, true},
		"without a field":            {`{"b":{"c":1}}`, `{"a":1,"b":{"c":1,"d":2}}`, true},
		"all members of an object":   {`{"b":{}}`, `{"b":{"c":1}}`, true},
		"in another order":           {`{"files":[{"a":2},{"a":1}]}`, `{"files":[{"a":1,"b":1},{"a":2,"b":3}]}`, true},
		"with a field that it lacks": {`{"a":1,"b":1}`, `{"a":1}`, false},
		"with another value":         {`{"a":2}`, `{"a":1,"b":1}`, false},
		"with fewer elements":        {`{"files":[{"a":1}]}`, `{"files":[{"a":1},{"a":1}]}`, false},
		"another element":            {`{"files":[{"a":2},{"a":2}]}`, `{"files":[{"a":1,"b":1},{"a":2,"b":3}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rules.EqualWhereStored([]byte(test.stored), []byte(test.document)); got != test.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestSumIsThatOfEncodingJSON: the hashes that the documents of shared indices hold since before arrays without order stay valid where no
// such array has several objects.
func TestSumIsThatOfEncodingJSON(t *testing.T) {
	rules := equality.New([]string{"files.*"}, "left")
	for _, document := range append(generated(), `{"b":"<&>\u2028\ud800\u0000","é":[[{}],[]],"a\"b":{"d":-0,"c":1e5},"left":1,"files":[{"x":[1,"2"]}]}`) {
		var value map[string]any
		decoder := json.NewDecoder(strings.NewReader(document))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		delete(value, "left")
		plain, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(plain); rules.Sum([]byte(document)) != equality.Sum(sum[:16]) {
			t.Errorf("%s", document)
		}
	}
}

// TestShuffled: documents whose arrays without order are shuffled are equal, and those with another one shuffled are not.
func TestShuffled(t *testing.T) {
	rules := equality.New([]string{"files.*"})
	random := rand.New(rand.NewPCG(1, 2))
	for _, inner := range generated() {
		elements := make([]string, 7)
		for i := range elements {
			elements[i] = fmt.Sprintf(`{"n":%d,"x":%s}`, i, inner)
		}
		document := func(name string) []byte {
			random.Shuffle(len(elements), func(i, j int) { elements[i], elements[j] = elements[j], elements[i] })
			return fmt.Appendf(nil, `{"%s":[%s]}`, name, strings.Join(elements, ","))
		}
		if a, b := document("files"), document("files"); !rules.Equal(a, b) || !rules.EqualWhereStored(a, b) {
			t.Errorf("%s\n%s", a, b)
		}
		if a, b := document("other"), document("other"); rules.Equal(a, b) != bytes.Equal(a, b) {
			t.Errorf("%s\n%s", a, b)
		}
	}
}

// generated returns documents without arrays of several objects.
func generated() []string {
	random := rand.New(rand.NewPCG(3, 4))
	var value func(depth int) any
	value = func(depth int) any {
		switch random.IntN(4 + 3*min(1, depth)) {
		case 0:
			return random.IntN(100)
		case 1:
			return string([]rune{rune(random.IntN(0x3000)), '"', rune(random.IntN(128))})
		case 2:
			return random.Float64() - 0.5
		case 3:
			return nil
		case 4:
			return []any{value(depth - 1), random.IntN(9)}
		default:
			object := map[string]any{}
			for range random.IntN(5) {
				object[string(rune(random.IntN(300)))] = value(depth - 1)
			}
			return object
		}
	}
	var all []string
	for range 500 {
		data, _ := json.Marshal(map[string]any{"files": value(4), "other": value(4)})
		all = append(all, string(data))
	}
	return all
}

func TestNotJSON(t *testing.T) {
	rules := equality.New([]string{"files"})
	deep := strings.Repeat(`{"files":[`, 20000) + strings.Repeat(`]}`, 20000)
	for _, text := range []string{"", " ", "{", `{"a"`, `{"files":[{},{}`, `{"files":[{"a`, `"`, "[", deep} {
		if !rules.Equal([]byte(text), []byte(text)) || rules.Equal([]byte(text), []byte(`{"files":[{"b":1}]}`)) {
			t.Errorf("%.40q", text)
		}
	}
}

func BenchmarkEqual(b *testing.B) {
	rules := equality.New([]string{"files.*", "samples.*"})
	for _, files := range []int{3, 1000} {
		items := make([]string, files)
		for i := range items {
			items[i] = fmt.Sprintf(`{"objectId":"00000000-0000-5000-8000-%012d","fileName":"f%d.bam","fileSize":%d,"fileType":"BAM",`+
				`"fileAccess":"open","fileMd5sum":"%032d","dataType":"reads","info":{"a":["b","c"]}}`, i, i, i, i)
		}
		document := func() []byte {
			return fmt.Appendf(nil, `{"analysisId":"a","studyId":"S1","experiment":{"n":1},"files":[%s],"samples":[{"sampleId":"SA1"},{"sampleId":"SA2"}]}`,
				strings.Join(items, ","))
		}
		stored := document()
		b.Run(fmt.Sprintf("same/%d", files), func(b *testing.B) {
			b.SetBytes(int64(len(stored)))
			for b.Loop() {
				rules.Equal(stored, slices.Clone(stored))
			}
		})
		slices.Reverse(items)
		other := document()
		b.Run(fmt.Sprintf("reversed/%d", files), func(b *testing.B) {
			b.SetBytes(int64(len(stored)))
			for b.Loop() {
				if !rules.Equal(stored, other) {
					b.Fatal("not equal")
				}
			}
		})
		b.Run(fmt.Sprintf("decoded/%d", files), func(b *testing.B) {
			b.SetBytes(int64(len(stored)))
			for b.Loop() {
				for _, text := range [][]byte{stored, other} {
					var value map[string]any
					decoder := json.NewDecoder(bytes.NewReader(text))
					decoder.UseNumber()
					_ = decoder.Decode(&value)
					data, _ := json.Marshal(value)
					sha256.Sum256(data)
				}
			}
		})
	}
}
