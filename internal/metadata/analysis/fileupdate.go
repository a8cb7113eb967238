package analysis

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// md5Pattern matches MD5 sums.
var md5Pattern = regexp.MustCompile(`^[a-fA-F0-9]{32}$`)

// FileUpdate is the body of a change of a file. Members that are missing or null do not change; unknown ones are ignored, as Song does.
type FileUpdate struct {
	// size to info are JSON texts, "" when they do not change.
	size, md5, access, dataType, info string
}

// ParseFileUpdate parses and checks a body; CodeInvalid (invalid.file.update.request) when a value is not valid.
func ParseFileUpdate(body []byte) (FileUpdate, error) {
	doc, err := parseObject(body)
	if err != nil {
		return FileUpdate{}, err
	}
	var u FileUpdate
	var faults []core.Violation
	fault := func(pointer, message, keyword string) {
		faults = append(faults, core.Violation{Pointer: pointer, Message: message, Keyword: keyword})
	}
	gjson.Parse(doc).ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.Null {
			return true
		}
		switch key.Str {
		case "fileSize":
			u.size = value.Raw
			if n, err := strconv.ParseInt(value.Raw, 10, 64); err != nil || n < 1 {
				fault("/fileSize", fmt.Sprintf("must be an integer from 1 to %d", math.MaxInt64), "minimum")
			}
		case "fileMd5sum":
			u.md5 = value.Raw
			if !md5Pattern.MatchString(stringOf(value.Raw)) {
				fault("/fileMd5sum", "must be an MD5 sum of 32 hexadecimal digits", "pattern")
			}
		case "fileAccess":
			u.access = value.Raw
			if access := stringOf(value.Raw); access != "open" && access != "controlled" {
				fault("/fileAccess", `must be "open" or "controlled"`, "enum")
			}
		case "dataType":
			u.dataType = value.Raw
			if value.Type != gjson.String || !Storable(value.Str) {
				fault("/dataType", "must be a string without NUL characters", "type")
			}
		case "info":
			u.info = value.Raw
			if !value.IsObject() {
				fault("/info", "must be an object", "type")
			}
		}
		return true
	})
	if len(faults) == 0 {
		return u, nil
	}
	invalid := ViolationError("the change of the file is not valid", faults)
	invalid.ErrorID = idInvalidUpdate
	return FileUpdate{}, invalid
}

// apply returns the members of a file after the change, and what it changes.
func (u *FileUpdate) apply(members []member) ([]member, datamodel.FileChangeType) {
	next, did := slices.Clone(members), datamodel.FileUnchanged
	set := func(name, value string, changed datamodel.FileChangeType) {
		if value == "" {
			return
		}
		at := slices.IndexFunc(next, func(m member) bool { return m.name == name })
		switch {
		case at < 0:
			next = append(next, member{name: name, key: quoteJSON(name), value: value})
		case equalScalars(next[at].value, value):
			return
		default:
			next[at].value = value
		}
		if did != datamodel.FileContentChanged {
			did = changed
		}
	}
	set("fileSize", u.size, datamodel.FileContentChanged)
	set("fileMd5sum", u.md5, datamodel.FileContentChanged)
	set("fileAccess", u.access, datamodel.FileMetadataChanged)
	set("dataType", u.dataType, datamodel.FileMetadataChanged)
	if u.info != "" {
		stored := ""
		if at := slices.IndexFunc(next, func(m member) bool { return m.name == "info" }); at >= 0 {
			stored = next[at].value
		}
		set("info", mergedInfo(stored, u.info), datamodel.FileMetadataChanged)
	}
	return next, did
}

// equalScalars reports whether two JSON texts are the same, or the same number or string in another notation.
func equalScalars(a, b string) bool {
	if a == b {
		return true
	}
	x, y := gjson.Parse(a), gjson.Parse(b)
	switch {
	case x.Type == gjson.String && y.Type == gjson.String:
		return x.Str == y.Str
	case x.Type == gjson.Number && y.Type == gjson.Number:
		return x.Num == y.Num && x.Int() == y.Int()
	}
	return false
}

// mergedInfo returns the info of a file with the members of a change in the place of those with the same name, as Song merges them. Info
// that is neither an object nor null becomes the member info.
func mergedInfo(stored, change string) string {
	var members []member
	switch info := gjson.Parse(stored); {
	case info.IsObject():
		members = membersOf(info)
	case info.Type != gjson.Null:
		members = []member{{name: "info", key: `"info"`, value: stored}}
	}
	for _, m := range membersOf(gjson.Parse(change)) {
		if at := slices.IndexFunc(members, func(old member) bool { return old.name == m.name }); at >= 0 {
			members[at].value = m.value
		} else {
			members = append(members, m)
		}
	}
	return string(append(appendMembers([]byte{'{'}, members), '}'))
}

// ChangeFile changes the file at an index and returns what that changes.
func (p *Payload) ChangeFile(at int, u *FileUpdate) (datamodel.FileChangeType, error) {
	files := slices.Clone(p.Files)
	var did datamodel.FileChangeType
	files[at].members, did = u.apply(files[at].members)
	return did, p.SetFiles(files)
}
