/*
 * Writes packets of a script that are not control flow: PTWRITE, power, PEBS, events, triggers.
 * Layouts follow SDM volume 3 (edition 083), 33.4.2, as in ptscript_trace.c.
 */
#include <string.h>

#include "tests/support/ptscript_packet.h"

/* Parses the name of a value, or a number up to MAX. */
static int take_name(struct packet_writer *w, size_t at, const char *const *names, uint64_t max,
		     uint64_t *ret)
{
	for (*ret = 0; names[*ret] != NULL; (*ret)++)
		if (ptscript_is(&w->line, at, names[*ret]))
			return 0;
	return ptscript_number(&w->line, at, max, ret);
}

/* Second byte: bit 7: a FUP follows; bits 6:5: 0 for 4 bytes, 1 for 8. */
int packet_write_ptw(struct packet_writer *w, const struct packet_kind *kind)
{
	static const char *const words[] = {"ip", NULL};
	const char *size = ptscript_key(&w->line, 0);
	bool eight = size != NULL && strcmp(size, "8") == 0;
	unsigned ip = 0;
	uint64_t payload;
	int r = ptscript_number(&w->line, 0, eight ? UINT64_MAX : BITS(32), &payload);

	if (r == 0)
		r = packet_take_words(w, 1, words, &ip);
	if (r != 0)
		return r;
	if (size == NULL || (!eight && strcmp(size, "4") != 0))
		return packet_wrong(w, "give 4: or 8: and the payload, not", w->line.args[0]);
	packet_put_opcode(w, kind);
	packet_put(w, 0x12u | (unsigned)eight << 5 | ip << 7, 1);
	packet_put(w, payload, eight ? 8 : 4);
	return 0;
}

/* The opcode; bit 7 of its second byte: a FUP follows. */
int packet_write_exstop(struct packet_writer *w, const struct packet_kind *kind)
{
	static const char *const words[] = {"ip", NULL};
	unsigned ip = 0;
	int r = packet_take_words(w, 0, words, &ip);

	if (r != 0)
		return r;
	packet_put(w, (uint8_t)kind->bytes[0], 1);
	packet_put(w, (uint8_t)kind->bytes[1] | ip << 7, 1);
	return 0;
}

int packet_write_bep(struct packet_writer *w, const struct packet_kind *kind)
{
	w->item = 0;
	return packet_write_exstop(w, kind);
}

int packet_write_mwait(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t hints, ext;
	int r = ptscript_number(&w->line, 0, BITS(8), &hints);

	if (r == 0)
		r = ptscript_number(&w->line, 1, BITS(2), &ext);
	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, hints, 4);
	packet_put(w, ext, 4);
	return 0;
}

/* Parses "c6": the state as in MWAIT's hints, C1 is 0, C0 is 15. */
static int take_cstate(struct packet_writer *w, const char *text, uint64_t *ret)
{
	int r;

	if (*text != 'c')
		return packet_wrong(w, "give a C-state as c6, not", text);
	r = ptscript_value(w->line.script, w->line.number, text + 1, ret);
	if (r == 0 && *ret > 15)
		return packet_wrong(w, "no such C-state", text);
	*ret = (*ret + 15) % 16;
	return r;
}

/* Parses the sub-state ".1" behind the state, and cuts it off. */
static int take_sub_cstate(struct packet_writer *w, char *text, uint64_t *ret)
{
	char *dot = strchr(text, '.');
	int r;

	*ret = 0;
	if (dot == NULL)
		return 0;
	*dot = '\0';
	r = ptscript_value(w->line.script, w->line.number, dot + 1, ret);
	return r == 0 && *ret > 15 ? packet_wrong(w, "no such sub-state", dot + 1) : r;
}

/* Bit 7: caused by hardware; bits 15:12: state; bits 11:8: sub-state. */
int packet_write_pwre(struct packet_writer *w, const struct packet_kind *kind)
{
	static const char *const words[] = {"hw", NULL};
	uint64_t state, sub;
	unsigned hw = 0;
	int r = take_sub_cstate(w, w->line.args[0], &sub);

	if (r == 0)
		r = take_cstate(w, w->line.args[0], &state);
	if (r == 0)
		r = packet_take_words(w, 1, words, &hw);
	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, state << 12 | sub << 8 | hw << 7, 2);
	return 0;
}

/* Bits 3:0: deepest core C-state; 7:4: last one; 11:8: cause (0 interrupt, 2 store, 3 hardware). */
int packet_write_pwrx(struct packet_writer *w, const struct packet_kind *kind)
{
	static const struct {
		const char *name;
		unsigned bits;
	} reasons[] = {{"int", 1}, {"store", 4}, {"hw", 8}};
	const char *why = ptscript_key(&w->line, 0);
	uint64_t last, deepest;
	size_t i = 0;
	int r = take_cstate(w, w->line.args[0], &last);

	if (r == 0)
		r = take_cstate(w, w->line.args[1], &deepest);
	if (r != 0)
		return r;
	while (i < 3 && (why == NULL || strcmp(why, reasons[i].name) != 0))
		i++;
	if (i == 3)
		return packet_wrong(w, "give int:, store: or hw: before", w->line.args[0]);
	packet_put_opcode(w, kind);
	packet_put(w, deepest | last << 4 | (uint64_t)reasons[i].bits << 8, 5);
	return 0;
}

/* Bits 4:0: type; bit 7: items have 4 bytes, else 8. */
int packet_write_bbp(struct packet_writer *w, const struct packet_kind *kind)
{
	bool four = ptscript_is(&w->line, 1, "4");
	uint64_t type;
	int r = ptscript_number(&w->line, 0, BITS(5), &type);

	if (r == 0 && !four && !ptscript_is(&w->line, 1, "8"))
		return packet_wrong(w, "items have 4 or 8 bytes, not", w->line.args[1]);
	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, type | (four ? 0x80 : 0), 1);
	w->item = four ? 4 : 8;
	return 0;
}

/* Bits 7:3: the identifier, above 100b. */
int packet_write_bip(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t id, value;
	int r = ptscript_number(&w->line, 0, BITS(5), &id);

	(void)kind;
	if (w->item == 0)
		return packet_wrong(w, "only between bbp and bep, item", w->line.args[0]);
	if (r == 0)
		r = ptscript_number(&w->line, 1, BITS(8 * w->item), &value);
	if (r != 0)
		return r;
	packet_put(w, id << 3 | 4, 1);
	packet_put(w, value, w->item);
	return 0;
}

/* SDM table "CFE Packet Type and Vector Fields Details"; the last two are FRED's. */
static const char *const cfe_types[] = {
	"0",	 "intr",    "iret",   "smi",	     "rsm",	 "sipi",
	"init",	 "vmentry", "vmexit", "vmexit_intr", "shutdown", "11",
	"uintr", "uiret",   "swintr", "syscall",     NULL,
};
static const char *const evd_types[] = {"cr2", "vmxq", "vmxr", NULL};

/* Bits 4:0: type; bit 7: a FUP follows. Then the vector, 0 if none. */
int packet_write_cfe(struct packet_writer *w, const struct packet_kind *kind)
{
	static const char *const words[] = {"ip", NULL};
	uint64_t type, vector = 0;
	bool has_vector = w->line.n_args > 1 && !ptscript_is(&w->line, 1, "ip");
	unsigned ip = 0;
	int r = take_name(w, 0, cfe_types, BITS(5), &type);

	if (r == 0 && has_vector)
		r = ptscript_number(&w->line, 1, BITS(8), &vector);
	if (r == 0)
		r = packet_take_words(w, has_vector ? 2 : 1, words, &ip);
	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, type | ip << 7, 1);
	packet_put(w, vector, 1);
	return 0;
}

int packet_write_evd(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t type, value;
	int r = take_name(w, 0, evd_types, BITS(6), &type);

	if (r == 0)
		r = ptscript_number(&w->line, 1, UINT64_MAX, &value);
	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, type, 1);
	packet_put(w, value, 8);
	return 0;
}

/* Flags (bit 7: a FUP follows; 6: ICNT is present; 5: several triggers), TRBV, ICNT. */
int packet_write_trig(struct packet_writer *w, const struct packet_kind *kind)
{
	static const char *const words[] = {"mult", "icnt", "ip", NULL};
	uint64_t trbv, icnt = 0;
	char *key, *number = NULL;
	unsigned flags = 0;
	int r = ptscript_number(&w->line, 0, BITS(8), &trbv);

	for (size_t i = 1; i < w->line.n_args && r == 0; i++) {
		key = ptscript_key(&w->line, i);
		if (key == NULL)
			continue;
		number = w->line.args[i];
		r = ptscript_number(&w->line, i, BITS(16), &icnt);
		w->line.args[i] = key;
	}
	if (r == 0)
		r = packet_take_words(w, 1, words, &flags);
	if (r != 0)
		return r;
	if ((number != NULL) != ((flags & 2) != 0))
		return packet_wrong(w, "give icnt: and a number, not", w->line.args[1]);
	packet_put_opcode(w, kind);
	packet_put(w, flags << 5, 1);
	packet_put(w, trbv, 1);
	packet_put(w, icnt, number != NULL ? 2 : 0);
	return 0;
}
