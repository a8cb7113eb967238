package memory_test

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// study is the only study of an upstream.
const study = "S1"

// upstream is a Song server whose analyses are made when they are read, so that this process does not hold them.
type upstream struct {
	*httptest.Server
	testCase
	text []byte
}

// newUpstream returns a server of the analyses of a case.
func newUpstream(t *testing.T, c testCase) *upstream {
	t.Helper()
	u := &upstream{testCase: c, text: words(c.bytes + c.records)}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

// words returns a text of n bytes that compresses like metadata.
func words(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 0, n+16)
	for len(text) < n {
		text = fmt.Appendf(text, "term-%03d %d ", r.IntN(500), r.IntN(10_000))
	}
	return text[:n]
}

// ServeHTTP implements http.Handler.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const prefix = "/studies/" + study + "/analysis/"
	switch path := r.URL.Path; {
	case path == "/studies/all":
		_, _ = fmt.Fprintf(w, "[%q]", study)
	case path == prefix+"paginated":
		offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		n := max(0, min(limit, u.records-offset))
		_, _ = fmt.Fprintf(w, `{"totalAnalyses":%d,"currentTotalAnalyses":%d,"analyses":[`, u.records, n)
		for i := range n {
			if i > 0 {
				_, _ = w.Write([]byte{','})
			}
			u.write(w, offset+i)
		}
		_, _ = w.Write([]byte("]}"))
	case len(path) > len(prefix):
		number, _ := strconv.Atoi(path[len(prefix)+1:])
		u.write(w, number)
	default:
		http.NotFound(w, r)
	}
}

// write writes one analysis.
func (u *upstream) write(w http.ResponseWriter, number int) {
	_, _ = fmt.Fprintf(w, `{"analysisId":"a%06d","studyId":%q,"analysisState":"PUBLISHED","analysisVersion":%d,`+
		`"analysisType":{"name":"large","version":1},"experiment":{"platform":"P%d","text":`, number, study, number, number%7)
	list := make([]byte, 0, u.bytes+1000)
	switch u.shape {
	case oneText:
		_, _ = fmt.Fprintf(w, `"%s"}}`, u.text[number:number+u.bytes])
		return
	case values:
		const size = 40
		for i := 0; len(list) < u.bytes; i++ {
			list = fmt.Appendf(list, `,"%06d-%06d %s"`, number, i, u.text[i%1000:i%1000+size-18])
		}
		list[0] = '['
		list = append(list, "]}}"...)
	case files:
		list = append(list, `"none"},"files":`...)
		head := len(list)
		for i := 0; len(list) < u.bytes; i++ {
			sum := md5.Sum(fmt.Appendf(nil, "%d %d", number, i))
			list = fmt.Appendf(list, `,{"objectId":"%x-%x-%x-%x-%x","studyId":%q,"analysisId":"a%06d","fileName":"%s.%06d.%06d.bam",`+
				`"fileSize":%d,"fileType":"BAM","fileMd5sum":"%x","fileAccess":"controlled","dataType":"Aligned Reads"}`,
				sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:], study, number, u.text[i%1000:i%1000+12], number, i,
				binary.BigEndian.Uint32(sum[:]), md5.Sum(sum[:]))
		}
		list[head] = '['
		list = append(list, "]}"...)
	}
	_, _ = w.Write(list)
}
