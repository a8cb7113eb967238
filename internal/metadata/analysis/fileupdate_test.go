package analysis_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
)

// TestChangeFile: a change of a file changes what it names and leaves valid JSON; info is merged, and info that is no object becomes a member,
// as in Song.
func TestChangeFile(t *testing.T) {
	const content, metadata, none = datamodel.FileContentChanged, datamodel.FileMetadataChanged, datamodel.FileUnchanged
	for name, tt := range map[string]struct {
		info, update string
		did          datamodel.FileChangeType
		path, then   string
	}{
		"size":                   {`{}`, `{"fileSize":1010}`, content, "fileSize", "1010"},
		"the same size":          {`{}`, `{"fileSize":1000,"fileName":"ignored"}`, none, "fileSize", "1e3"},
		"size and access":        {`{}`, `{"fileSize":9223372036854775807,"fileAccess":"controlled"}`, content, "fileAccess", `"controlled"`},
		"MD5 sum":                {`{}`, `{"fileMd5sum":"` + strings.ToUpper(sum("z")) + `"}`, content, "fileMd5sum", `"` + strings.ToUpper(sum("z")) + `"`},
		"access":                 {`{}`, `{"fileAccess":"controlled"}`, metadata, "fileAccess", `"controlled"`},
		"the same access":        {`{}`, `{"fileAccess":"\u006fpen"}`, none, "fileAccess", `"open"`},
		"data type":              {`{}`, `{"dataType":""}`, metadata, "dataType", `""`},
		"nothing":                {`{}`, `{"fileSize":null,"fileMd5sum":null,"fileAccess":null,"dataType":null,"info":null}`, none, "dataType", `"SNV"`},
		"info is merged":         {`{"a":1,"k":[]}`, `{"info":{"b":{"c":2},"a":null}}`, metadata, "info", `{"a":null,"k":[],"b":{"c":2}}`},
		"the same info":          {`{"a":1,"k":[]}`, `{"info":{"a":1}}`, none, "info", `{"a":1,"k":[]}`},
		"info that was null":     {`null`, `{"info":{"b":2}}`, metadata, "info", `{"b":2}`},
		"info that was text":     {`"text"`, `{"info":{"b":2}}`, metadata, "info", `{"info":"text","b":2}`},
		"info that was an array": {`[1,{"b":1}]`, `{"info":{"b":2}}`, metadata, "info", `{"info":[1,{"b":1}],"b":2}`},
		"info that was a number": {`5`, `{"info":{"b":2}}`, metadata, "info", `{"info":5,"b":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := stored(t, strings.Replace(payload("a", "b"), `"fileName":"b",`, `"fileName":"b","info":`+tt.info+`,`, 1))
			p, err := d.Payload()
			if err != nil {
				t.Fatal(err)
			}
			u, err := analysis.ParseFileUpdate([]byte(tt.update))
			if err != nil {
				t.Fatal(err)
			}
			did, err := p.ChangeFile(1, &u)
			if did != tt.did || err != nil {
				t.Errorf("changed %s, %v", did, err)
			}
			before := gjson.GetBytes(d.Bytes(), "files.0").Raw
			d.SetPayload(&p, kind(), 2)
			whole := gjson.ParseBytes(d.Bytes())
			wantEqual(t, whole.Get("files.1."+tt.path).Raw, tt.then)
			wantEqual(t, whole.Get("files.1.objectId").Str, analysis.ObjectID("id", "b"))
			wantEqual(t, whole.Get("files.0").Raw, before)
			wantEqual(t, p.Files[1].MD5, strings.ToLower(whole.Get("files.1.fileMd5sum").Str))
		})
	}
}

// TestChangeAddsInfo: a file that had no info gets it as its last member.
func TestChangeAddsInfo(t *testing.T) {
	d := stored(t, payload("a"))
	p, err := d.Payload()
	if err != nil {
		t.Fatal(err)
	}
	u, err := analysis.ParseFileUpdate([]byte(`{"info":{"b":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	did, err := p.ChangeFile(0, &u)
	if did != datamodel.FileMetadataChanged || err != nil {
		t.Errorf("changed %s, %v", did, err)
	}
	wantEqual(t, strings.Contains(p.ValidationInput(), `"dataType":"SNV","info":{"b":2}}]`), true)
}

func TestFileUpdateRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		update  string
		first   string
		pointer []string
	}{
		"no size":                {`{"fileSize":0}`, "/fileSize must be an integer from 1 to 9223372036854775807", []string{"/fileSize"}},
		"a fraction":             {`{"fileSize":1.5}`, "/fileSize must be an integer from 1 to 9223372036854775807", []string{"/fileSize"}},
		"a size over 64 bits":    {`{"fileSize":9223372036854775808}`, "/fileSize must be an integer from 1 to 9223372036854775807", []string{"/fileSize"}},
		"a size that is text":    {`{"fileSize":"5"}`, "/fileSize must be an integer from 1 to 9223372036854775807", []string{"/fileSize"}},
		"a short MD5 sum":        {`{"fileMd5sum":"` + sum("z")[1:] + `"}`, "/fileMd5sum must be an MD5 sum of 32 hexadecimal digits", []string{"/fileMd5sum"}},
		"an unknown access":      {`{"fileAccess":"x"}`, `/fileAccess must be "open" or "controlled"`, []string{"/fileAccess"}},
		"info that is no object": {`{"info":[]}`, "/info must be an object", []string{"/info"}},
		"data type that is none": {`{"dataType":5}`, "/dataType must be a string without NUL characters", []string{"/dataType"}},
		"data type with NUL":     {`{"dataType":"\u0000"}`, "/dataType must be a string without NUL characters", []string{"/dataType"}},
		"two":                    {`{"info":1,"fileAccess":5}`, "/info must be an object", []string{"/info", "/fileAccess"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := analysis.ParseFileUpdate([]byte(tt.update))
			e := wantError(t, err, core.CodeInvalid, "invalid.file.update.request", "the change of the file is not valid: "+tt.first)
			var pointers []string
			for _, v := range e.Violations {
				pointers = append(pointers, v.Pointer)
			}
			wantEqual(t, pointers, tt.pointer)
		})
	}
}
