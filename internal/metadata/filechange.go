package metadata

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// md5Pattern matches MD5 sums.
var md5Pattern = regexp.MustCompile(`^[a-fA-F0-9]{32}$`)

// File returns a file of a study, a JSON object with its ids, and the state of its analysis. CodeNotFound for an unknown study, and
// (file.not.found) when the study has no file with that object id.
func (r *Repository) File(ctx context.Context, study, objectID string) (json.RawMessage, core.AnalysisState, error) {
	id, err := r.analysisOfFile(ctx, study, objectID)
	if err != nil {
		return nil, "", err
	}
	state, _, body, err := r.read(ctx, r.store.Read(), study, id)
	if err != nil {
		return nil, "", err
	}
	found, ok := storedFile(body, objectID)
	if !ok {
		return nil, "", fileNotFound()
	}
	return json.RawMessage(found), state, nil
}

// storedFile returns a file of a stored analysis by its object id.
func storedFile(body []byte, objectID string) (found string, ok bool) {
	gjson.GetBytes(body, "files").ForEach(func(_, f gjson.Result) bool {
		if f.Get("objectId").Str == objectID {
			found, ok = f.Raw, true
		}
		return !ok
	})
	return found, ok
}

func fileNotFound() *core.Error {
	return newError(core.CodeNotFound, idNoFile, "the study has no file of this object id")
}

// analysisOfFile returns the id of the analysis with a file.
func (r *Repository) analysisOfFile(ctx context.Context, study, objectID string) (string, error) {
	if err := r.requireStudy(ctx, r.store.Read(), study); err != nil {
		return "", err
	}
	found, _, err := r.Entities(ctx, core.EntityQuery{ObjectID: objectID, Study: study, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(found) == 0 || objectID == "" {
		return "", fileNotFound()
	}
	return found[0].AnalysisID, nil
}

// fileUpdate is the body of a change of a file. Members that are missing or null do not change; unknown ones are ignored, as Song does.
type fileUpdate struct {
	// size to info are JSON texts, "" when they do not change.
	size, md5, access, dataType, info string
}

// parseFileUpdate parses and checks a body; CodeInvalid (invalid.file.update.request) when a value is not valid.
func parseFileUpdate(body []byte) (fileUpdate, error) {
	doc, err := parseObject(body)
	if err != nil {
		return fileUpdate{}, err
	}
	var u fileUpdate
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
			if value.Type != gjson.String || !storable(value.Str) {
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
	invalid := violationError("the change of the file is not valid", faults)
	invalid.ErrorID = idInvalidUpdate
	return fileUpdate{}, invalid
}

// apply returns the members of a file after the change, and what it changes.
func (u *fileUpdate) apply(members []member) ([]member, core.FileChangeType) {
	next, did := slices.Clone(members), core.FileUnchanged
	set := func(name, value string, changed core.FileChangeType) {
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
		if did != core.FileContentChanged {
			did = changed
		}
	}
	set("fileSize", u.size, core.FileContentChanged)
	set("fileMd5sum", u.md5, core.FileContentChanged)
	set("fileAccess", u.access, core.FileMetadataChanged)
	set("dataType", u.dataType, core.FileMetadataChanged)
	if u.info != "" {
		stored := ""
		if at := slices.IndexFunc(next, func(m member) bool { return m.name == "info" }); at >= 0 {
			stored = next[at].value
		}
		set("info", mergedInfo(stored, u.info), core.FileMetadataChanged)
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

// ChangeFile changes the size, MD5 sum, access, data type and info of a file, whose object id and analysis stay. Info is merged member
// by member. Size and MD5 sum change only while the analysis is unpublished. Errors: CodeInvalid (invalid.file.update.request,
// payload.parsing) for a bad body, CodeNotFound as File, CodeInvalid (illegal.file.update.request) for a change that the state of the
// analysis does not allow, CodeConflict (duplicate.file) for an MD5 sum that another analysis of the study has.
func (r *Repository) ChangeFile(ctx context.Context, study, objectID string, body []byte) (core.FileChange, error) {
	update, err := parseFileUpdate(body)
	if err != nil {
		return core.FileChange{}, err
	}
	id, err := r.analysisOfFile(ctx, study, objectID)
	if err != nil {
		return core.FileChange{}, err
	}
	result := core.FileChange{AnalysisID: id}
	err = r.change(ctx, actionChangeFile, study, id, func(_ context.Context, c *current) (payload, core.AnalysisTypeRef, error) {
		p, err := newPayload(c.submission(true))
		if err != nil {
			return payload{}, core.AnalysisTypeRef{}, err
		}
		at := slices.IndexFunc(p.files, func(f file) bool { return f.objectID == objectID })
		before, found := storedFile(c.bytes(), objectID)
		if at < 0 || !found {
			return payload{}, core.AnalysisTypeRef{}, fileNotFound()
		}
		result.State, result.Before = c.state, json.RawMessage(before)
		if c.state == core.StateSuppressed {
			return payload{}, core.AnalysisTypeRef{}, illegalUpdate("the analysis is suppressed: its files cannot be changed")
		}
		members, did := update.apply(p.files[at].members)
		result.Type = did
		switch {
		case did == core.FileUnchanged:
			return payload{}, core.AnalysisTypeRef{}, errUnchanged
		case did == core.FileContentChanged && c.state != core.StateUnpublished:
			return payload{}, core.AnalysisTypeRef{}, illegalUpdate("the size and the MD5 sum of a file can be changed only while its analysis is unpublished")
		}
		err = p.setFiles(slices.Concat(p.files[:at], []file{{members: members, objectID: objectID}}, p.files[at+1:]))
		return p, c.kind, err
	})
	return result, err
}

func illegalUpdate(message string) *core.Error {
	return newError(core.CodeInvalid, idIllegalUpdate, message)
}

// setFiles replaces the files of the payload.
func (p *payload) setFiles(files []file) error {
	list := []byte{'['}
	for i, f := range files {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(appendMembers(append(list, '{'), f.members), '}')
	}
	p.doc, p.files = "", nil
	err := p.readFiles(gjson.ParseBytes(append(list, ']')))
	for i := range p.files {
		p.files[i].objectID = files[i].objectID
	}
	return err
}

// DeleteFiles removes files of one unpublished analysis, all or none. Errors: CodeNotFound as File, CodeInvalid
// (illegal.file.update.request) when the analysis is not unpublished, would have no files, or the files are of several analyses.
func (r *Repository) DeleteFiles(ctx context.Context, study string, objectIDs []string) error {
	id := ""
	for _, objectID := range objectIDs {
		of, err := r.analysisOfFile(ctx, study, objectID)
		if err != nil {
			return err
		}
		if id != "" && of != id {
			return illegalUpdate("the files are of several analyses: delete those of one analysis at a time")
		}
		id = of
	}
	wanted := len(slices.Compact(slices.Sorted(slices.Values(objectIDs))))
	return r.change(ctx, actionChangeFile, study, id, func(_ context.Context, c *current) (payload, core.AnalysisTypeRef, error) {
		p, err := newPayload(c.submission(true))
		if err != nil {
			return payload{}, core.AnalysisTypeRef{}, err
		}
		kept := slices.DeleteFunc(slices.Clone(p.files), func(f file) bool { return slices.Contains(objectIDs, f.objectID) })
		switch {
		case c.state != core.StateUnpublished:
			err = illegalUpdate("files can be deleted only while their analysis is unpublished")
		case len(kept) == 0:
			err = illegalUpdate("an analysis must have at least one file")
		case len(kept)+wanted > len(p.files):
			err = fileNotFound() // another request deleted some
		default:
			err = p.setFiles(kept)
		}
		return p, c.kind, err
	})
}
