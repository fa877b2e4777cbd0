package main

// operation is what is to become of a container's quota.
type operation int

const (
	remain operation = iota
	up
	down
	reset
)

// operation is koordlet's genOperationByContainer.
func (c *container) operation(is *record) operation {
	allowed := c.allowed(is)
	switch {
	case !c.strategy.quota:
		return reset
	case !allowed:
		return down
	case c.was == nil || is.periods <= c.was.periods:
		return remain
	case is.throttled > c.was.throttled:
		return up
	}
	return remain
}

// allowed is koordlet's burstLimiter: a bucket of percent of the limit, times seconds. A container that uses more than its limit
// takes from it, and one that uses less than 60 % of it fills it.
func (c *container) allowed(is *record) bool {
	s := c.strategy
	if s.seconds < 0 {
		return true
	}
	if capacity := s.seconds * (s.quotaPercent - 100) * 1_000; is.capacity != capacity {
		is.capacity, is.tokens = capacity, capacity/4
	} else if c.was != nil {
		elapsed := (is.at - c.was.at) / 1_000 // µs
		used := (is.usage - c.was.usage) * 100 * c.period / max(elapsed*c.limit, 1)
		if used >= 100 || used < 60 {
			is.tokens += (100 - used) * elapsed / 1_000
		}
		is.tokens = max(min(is.tokens, is.capacity), -is.capacity)
	}
	return is.tokens > 0
}

// onNode is koordlet's changeOperationByNode.
func (o operation) onNode(shared state) operation {
	switch {
	case shared == overload && (o == up || o == remain):
		return down
	case shared != idle && o == up:
		return remain
	}
	return o
}

// target is the quota that an operation makes of the present one: between kubelet's and the largest that is allowed.
func (c *container) target(quota int64, o operation) int64 {
	switch o {
	case up:
		quota = quota * 12 / 10
	case down:
		quota = quota * 8 / 10
	case reset:
		quota = c.limit
	}
	ceiling := c.limit * max(c.strategy.quotaPercent, 100) / 100
	return max(c.limit, min(quota, ceiling))
}
