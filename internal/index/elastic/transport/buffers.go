package transport

import "bytes"

// maxPooledBytes is the capacity of the largest buffer that is reused.
const maxPooledBytes = 8 << 20

// GetBuffer returns an empty buffer, for responses and compressed bodies. recycle takes it back.
func (c *Client) GetBuffer() *bytes.Buffer {
	if buffer, ok := c.buffers.Get().(*bytes.Buffer); ok {
		buffer.Reset()
		return buffer
	}
	return new(bytes.Buffer)
}

// PutBuffer makes a buffer available to later calls of buffer. It must not be used afterwards.
func (c *Client) PutBuffer(buffer *bytes.Buffer) {
	if buffer.Cap() <= maxPooledBytes {
		c.buffers.Put(buffer)
	}
}
