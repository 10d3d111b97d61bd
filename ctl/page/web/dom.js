// Elements of the page by their id.

export const $ = (id) => document.getElementById(id);
