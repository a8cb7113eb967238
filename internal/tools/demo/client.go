package demo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// client calls the demo's own server.
type client struct {
	base string
	http *http.Client
}

func newClient(base string) *client {
	return &client{base: base, http: &http.Client{Timeout: 30 * time.Second}}
}

func (c *client) post(ctx context.Context, path string) (gjson.Result, error) {
	return c.do(ctx, http.MethodPost, path)
}

func (c *client) get(ctx context.Context, path string) (gjson.Result, error) {
	return c.do(ctx, http.MethodGet, path)
}

// send posts a notification with its signature, "" for none.
func (c *client) send(ctx context.Context, path string, event []byte, signature string) error {
	header := http.Header{"Content-Type": {"application/json"}}
	if signature != "" {
		header.Set("X-Signature-256", signature)
	}
	_, err := c.read(ctx, http.MethodPost, path, event, header)
	return err
}

func (c *client) do(ctx context.Context, method, path string) (gjson.Result, error) {
	body, err := c.read(ctx, method, path, nil, nil)
	if err != nil {
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(body), nil
}

// try sends a JSON body, nil for none, and returns the response with any status.
func (c *client) try(ctx context.Context, method, path string, send []byte) (status int, answer gjson.Result, err error) {
	status, body, err := c.request(ctx, method, path, send, http.Header{"Content-Type": {"application/json"}})
	return status, gjson.ParseBytes(body), err
}

// read returns a complete response; a status other than success is an error.
func (c *client) read(ctx context.Context, method, path string, send []byte, header http.Header) ([]byte, error) {
	status, body, err := c.request(ctx, method, path, send, header)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s: %s", method, path, status, http.StatusText(status), gjson.GetBytes(body, "detail"))
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

func (c *client) request(ctx context.Context, method, path string, send []byte, header http.Header) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(send))
	if err != nil {
		return 0, nil, fmt.Errorf("calling tutti: %w", err)
	}
	maps.Copy(req.Header, header)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("calling tutti: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("reading tutti's response: %w", err)
	}
	return resp.StatusCode, body, nil
}

// documents returns the number of documents of an index with an outcome, from the metrics.
func (c *client) documents(ctx context.Context, index, outcome string) (float64, error) {
	body, err := c.read(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return 0, err
	}
	scanner := bufio.NewScanner(strings.NewReader(string(body)))
	for scanner.Scan() {
		value, ok := strings.CutPrefix(scanner.Text(), `tutti_documents_total{index="`+index+`",outcome="`+outcome+`"} `)
		if ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, nil
}
