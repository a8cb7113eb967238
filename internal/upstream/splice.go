package upstream

import (
	"bytes"
	"encoding/json"

	"tutti/internal/core"
)

// RepositoriesMember is the member that tutti adds to every document (CONTRACT section 1, Document).
const RepositoriesMember = "repositories"

const repositories = RepositoriesMember

// RepositoriesBlock returns the value of a document's member repositories: a JSON array with one block. It is created once per
// repository.
func RepositoriesBlock(r core.Repository) []byte {
	block := []struct {
		Code         string              `json:"code"`
		Name         string              `json:"name"`
		Organization string              `json:"organization"`
		Country      string              `json:"country"`
		URL          string              `json:"url"`
		Type         core.RepositoryType `json:"type"`
	}{{r.Code, r.Name, r.Organization, r.Country, r.URL, r.Type}}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(block); err != nil {
		return []byte("[]") // not reached: strings always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Splice appends the Document of a record to dst: body's bytes with "repositories":block after the opening brace, replacing any such
// member of the record. body is a Record's Body, one valid JSON object; anything else is appended unchanged, and rejected by the
// index. block is from RepositoriesBlock.
func Splice(dst, body, block []byte) []byte {
	return splice(dst, body, block, mayHaveRepositories(body))
}

// SpliceRecord is like Splice for a record whose HasRepositories is set.
func SpliceRecord(dst []byte, rec core.Record, block []byte) []byte {
	return splice(dst, rec.Body, block, rec.HasRepositories)
}

func splice(dst, body, block []byte, has bool) []byte {
	if len(body) < 2 || body[0] != '{' {
		return append(dst, body...)
	}
	first := skipSpace(body, 1)
	if first >= len(body) {
		return append(dst, body...)
	}
	dst = append(dst, `{"`+repositories+`":`...)
	dst = append(dst, block...)
	if has {
		return appendOthers(dst, body)
	}
	if body[first] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, body[1:]...)
}

// mayHaveRepositories reports whether body may have a member repositories: it contains the name, or an escape that can spell one of
// its letters.
func mayHaveRepositories(body []byte) bool {
	return bytes.Contains(body, []byte(repositories)) || bytes.Contains(body, []byte(`\u`))
}

// appendOthers appends the members of body except repositories, each preceded by a comma, and the closing brace. It is the slow
// path: few records contain that word.
func appendOthers(dst, body []byte) []byte {
	i := 1
	for {
		from := skipSpace(body, i)
		if from >= len(body) || body[from] == '}' {
			return append(dst, '}')
		}
		value, k := scanKey(body, from)
		if value < 0 {
			return append(append(dst, ','), body[from:]...)
		}
		end := scanValue(body, value, 1, nil)
		if end < 0 {
			return append(append(dst, ','), body[from:]...)
		}
		if !k.is(body, repositories) {
			dst = append(dst, ',')
			dst = append(dst, body[from:end]...)
		}
		if i = skipSpace(body, end); i >= len(body) || body[i] != ',' {
			return append(dst, '}')
		}
		i++
	}
}
