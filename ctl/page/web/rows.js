// Levels of detail: the frames of one depth in the order of time, with sums and with the longest
// frame of each 4, 16, 64, ..., so that drawing costs by pixel and not by frame.

const FAN = 4;

/** The rows of FRAMES: one for each depth. */
export function makeRows(frames) {
	const sizes = new Uint32Array(frames.depths + 1);

	for (let i = 0; i < frames.n; i++)
		sizes[frames.depth[i]]++;
	const rows = Array.from({ length: frames.depths }, (_, depth) => new Uint32Array(sizes[depth]));

	sizes.fill(0);
	for (let i = 0; i < frames.n; i++)
		rows[frames.depth[i]][sizes[frames.depth[i]]++] = i;
	return rows.map((ids) => new Row(frames, ids));
}

/** A row of things with start and end, which do not overlap; an index of the row is one of LIST. */
export function rowOf(list) {
	return new Row({
		start: Float64Array.from(list, (x) => x.start), end: Float64Array.from(list, (x) => x.end),
	}, Uint32Array.from(list, (_, i) => i));
}

/** Frames that do not overlap, in the order of time. */
export class Row {
	constructor(frames, ids) {
		const n = ids.length;

		this.ids = ids;
		this.n = n;
		this.start = new Float64Array(n);
		this.end = new Float64Array(n);
		this.length = new Float32Array(n);
		this.before = new Float64Array(n + 1); // time in the frames before
		for (let i = 0; i < n; i++) {
			this.start[i] = frames.start[ids[i]];
			this.end[i] = frames.end[ids[i]];
			this.length[i] = this.end[i] - this.start[i];
			this.before[i + 1] = this.before[i] + this.end[i] - this.start[i];
		}
		this.levels = [];
		for (let m = n; m > FAN; m = Math.ceil(m / FAN))
			this.levels.push(this.makeLevel(Math.ceil(m / FAN)));
	}

	// The longest of each FAN elements of the level below, by index into the row.
	makeLevel(m) {
		const below = this.levels.at(-1), level = new Uint32Array(m), { length } = this;
		const size = below ? below.length : this.n;

		for (let i = 0; i < m; i++) {
			let best = below ? below[i * FAN] : i * FAN;

			for (let k = i * FAN + 1; k < Math.min((i + 1) * FAN, size); k++) {
				const other = below ? below[k] : k;

				if (length[other] > length[best])
					best = other;
			}
			level[i] = best;
		}
		return level;
	}

	/** The longest of the elements from I to J - 1. */
	longest(i, j) {
		const { length, levels } = this;
		let best = i;

		for (let level = -1; ; level++) {
			const list = level < 0 ? null : levels[level], up = level + 1 < levels.length;

			for (; i < j && (!up || i % FAN !== 0); i++) {
				const other = list ? list[i] : i;

				if (length[other] > length[best])
					best = other;
			}
			while (i < j && j % FAN !== 0) {
				const other = list ? list[--j] : --j;

				if (length[other] > length[best])
					best = other;
			}
			if (i >= j)
				return best;
			i /= FAN;
			j /= FAN;
		}
	}

	/** The first element that ends after TIME. */
	firstAfter(time) {
		let low = 0, high = this.n;

		while (low < high) {
			const middle = low + high >> 1;

			if (this.end[middle] > time)
				high = middle;
			else
				low = middle + 1;
		}
		return low;
	}

	/** The first element behind I that starts at TIME or later; near ones are found fast. */
	firstFrom(i, time) {
		let step = 1;

		while (i + step < this.n && this.start[i + step] < time)
			step *= 2;
		let low = i + (step >> 1), high = Math.min(i + step, this.n);

		while (low < high) {
			const middle = low + high >> 1;

			if (this.start[middle] >= time)
				high = middle;
			else
				low = middle + 1;
		}
		return Math.max(low, i + 1);
	}

	/** The element at TIME, or -1. */
	at(time) {
		const i = this.firstAfter(time);

		return i < this.n && this.start[i] <= time ? i : -1;
	}

	/**
	 * Calls one(index) for each element between FROM and TO that is at least as long as CELL, and
	 * many(first, behind, longest, cellStart) for the shorter ones of each cell. Cells are multiples of
	 * CELL: they keep their contents while the view moves.
	 */
	draw(from, to, cell, one, many) {
		for (let i = this.firstAfter(from); i < this.n && this.start[i] < to;) {
			if (this.end[i] - this.start[i] >= cell) {
				one(i++);
				continue;
			}
			const cellStart = Math.floor(this.start[i] / cell) * cell;
			let j = this.firstFrom(i, cellStart + cell);

			// Only the last one can be longer than the cell.
			if (j - 1 > i && this.end[j - 1] - this.start[j - 1] >= cell)
				j--;
			many(i, j, this.longest(i, j), cellStart);
			i = j;
		}
	}
}
