/*
 * The --raw-* options: texts to struct raw. Called by cmd_decode.c; raw.c makes the bundle.
 */
#include "ctl/decode/raw.h"

#include <errno.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/size.h"

void raw_init(struct raw *raw)
{
	*raw = (struct raw){.mtc_period = UINT32_MAX};
	pevent_options_init(&raw->pevents);
}

void raw_done(struct raw *raw)
{
	for (size_t i = 0; i < raw->n_images; i++)
		free(raw->images[i].path);
	free(raw->images);
	pevent_options_done(&raw->pevents);
	raw_init(raw);
}

/* Cuts ":NUMBER" off the end of TEXT. False: there is none, and TEXT is as it was. */
static bool cut_number(char *text, uint64_t *ret)
{
	char *colon = strrchr(text, ':');

	if (!colon || size_parse_number(colon + 1, ret) < 0)
		return false;
	*colon = '\0';
	return true;
}

/* ":OFFSET:LENGTH", both or none. */
static void cut_range(struct raw_image *image)
{
	CLEANUP_FREE char *rest = strdup(image->path);
	uint64_t offset, length;

	if (!rest || !cut_number(rest, &length) || !cut_number(rest, &offset))
		return;
	free(image->path);
	image->path = TAKE_PTR(rest);
	image->offset = offset;
	image->length = length;
}

static int parse_image(struct raw_image *image)
{
	char *at = strrchr(image->path, '@');
	uint64_t last;
	int r;

	if (!at)
		return -EINVAL;
	r = size_parse_number(at + 1, &image->vaddr);
	if (r < 0)
		return r;
	*at = '\0';
	cut_range(image);
	if (!*image->path || image->length == 0)
		return -EINVAL;
	if (image->length == UINT64_MAX)
		return 0;
	if (__builtin_add_overflow(image->vaddr, image->length - 1, &last) ||
	    __builtin_add_overflow(image->offset, image->length, &last))
		return -ERANGE;
	return 0;
}

static int add_image(struct raw *raw, const struct raw_image *image)
{
	if (ARRAY_EXTEND(raw->images, raw->n_images) < 0)
		return -ENOMEM;
	raw->images[raw->n_images++] = *image;
	return 0;
}

int raw_add_image(struct raw *raw, const char *text)
{
	struct raw_image image = {.path = strdup(text), .length = UINT64_MAX};
	int r = image.path ? parse_image(&image) : -ENOMEM;

	if (r == 0)
		r = add_image(raw, &image);
	if (r < 0)
		free(image.path);
	return r;
}

/* N numbers of at most 32 bits, separated by SIGN; the last OPTIONAL ones may be missing and stay
 * as they are. */
static int parse_list(const char *text, char sign, uint32_t *ret, size_t n, size_t optional)
{
	CLEANUP_FREE char *copy = strdup(text);
	char separator[2] = {sign, '\0'}, *rest = copy, *word;
	uint64_t value;
	size_t i = 0;
	int r;

	if (!copy)
		return -ENOMEM;
	for (; (word = strsep(&rest, separator)); i++) {
		if (i == n)
			return -EINVAL;
		r = size_parse_number(word, &value);
		if (r < 0 || value > UINT32_MAX)
			return r < 0 ? r : -ERANGE;
		ret[i] = (uint32_t)value;
	}
	return i + optional >= n ? 0 : -EINVAL;
}

int raw_set_cpu(struct raw *raw, const char *text)
{
	uint32_t numbers[3] = {0};
	int r = parse_list(text, '/', numbers, 3, 1);

	if (r < 0)
		return r;
	/* What CPUID leaf 1 can express. */
	if (numbers[0] > 0xff + 0xf || numbers[1] > 0xff || numbers[2] > 0xf)
		return -ERANGE;
	raw->have_cpu = true;
	raw->family = numbers[0];
	raw->model = numbers[1];
	raw->stepping = numbers[2];
	return 0;
}

int raw_set_cpuid_0x15(struct raw *raw, const char *text)
{
	uint32_t numbers[2];
	int r = parse_list(text, ',', numbers, 2, 0);

	if (r < 0)
		return r;
	raw->tsc_art_den = numbers[0];
	raw->tsc_art_num = numbers[1];
	return 0;
}
