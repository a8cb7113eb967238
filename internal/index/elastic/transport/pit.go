package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/jsontext"
)

const (
	// PITKeepAlive is the maximum time between two requests for a point in time.
	PITKeepAlive = "5m"
	// closeTimeout limits closing a point in time, which also expires by itself.
	closeTimeout = 5 * time.Second
)

// OpenPIT opens a point in time of alias and returns its id.
func (c *Client) OpenPIT(ctx context.Context, alias string) (string, error) {
	var answer struct {
		ID string `json:"id"`
	}
	err := c.Fetch(ctx, esapi.OpenPointInTimeRequest{Index: []string{alias}, KeepAlive: PITKeepAlive}, &answer)
	return answer.ID, err
}

// ClosePIT closes a point in time, even if ctx has ended. If that fails, it expires after PITKeepAlive.
func (c *Client) ClosePIT(ctx context.Context, pit string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]string{"id": pit})
	if err == nil {
		_, err = c.Do(ctx, esapi.ClosePointInTimeRequest{Body: bytes.NewReader(body)}, nil)
	}
	if err != nil {
		c.cfg.Logger.Debug("a point in time could not be closed", "err", err)
	}
}

// AppendPIT appends the member of a search that names a point in time and extends its lifetime.
func AppendPIT(dst []byte, point string) []byte {
	dst = append(dst, `,"pit":{"id":`...)
	dst = jsontext.AppendRawString(dst, point)
	return append(dst, `,"keep_alive":"`+PITKeepAlive+`"}`...)
}
