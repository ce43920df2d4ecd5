// Methods that depend on a locale. The engine has no locale data and would ignore the locale, so these give the right
// result for a few common cases, and refuse all others. Without a locale, the result is that for American English, as in
// Node.js with the usual settings.
(function () {
  'use strict';
  const refuse = (name, instead) => {
    throw new ReferenceError(`${name} with this locale, these options or this value is not available here: the script engine has no locale data; ${instead}`);
  };
  const only = (options, known) => Object.keys(options ?? {}).every((key) => options[key] === undefined || known.includes(key));
  const isEnglish = (locale) => locale === undefined || /^en(-(US|GB|AU|NZ|IE))?$/.test(String(locale));
  const replace = (holder, name, make) => {
    const original = holder[name];
    const value = make(original);
    Object.defineProperty(value, 'name', { value: name });
    Object.defineProperty(holder, name, { value, writable: true, configurable: true, enumerable: false });
  };

  // Returns the digits before and after the decimal point, rounded half up on the decimal number.
  const digits = (value, most) => {
    const [mantissa, exponent = '0'] = String(value).split('e');
    const [before, after = ''] = mantissa.split('.');
    let [all, point] = [before + after, before.length + Number(exponent)];
    if (point < 0) [all, point] = ['0'.repeat(-point) + all, 0];
    all = all.padEnd(point + most + 1, '0');
    const kept = BigInt(`0${all.slice(0, point + most)}`) + (all[point + most] >= '5' ? 1n : 0n);
    const text = String(kept).padStart(most + 1, '0');
    return [text.slice(0, text.length - most), text.slice(text.length - most)];
  };
  const english = (value, options) => {
    const { style = 'decimal', useGrouping = true } = options ?? {};
    const fraction = { decimal: [0, 3], percent: [0, 0], currency: [2, 2] }[style];
    const least = options?.minimumFractionDigits ?? Math.min(fraction[0], options?.maximumFractionDigits ?? fraction[0]);
    const most = options?.maximumFractionDigits ?? Math.max(fraction[1], least);
    if (!(least >= 0 && least <= most && most <= 100)) throw new RangeError('maximumFractionDigits value is out of range');
    if (Number.isNaN(value)) return 'NaN';
    const sign = value < 0 || Object.is(value, -0) ? '-' : '';
    const size = value < 0 ? -value : value;
    const unit = style === 'percent' ? 2 : 0;
    let text = '\u221e';
    if (size !== Infinity) {
      const [mantissa, exponent = '0'] = String(size).split('e');
      let [whole, rest] = digits(unit ? `${mantissa}e${Number(exponent) + unit}` : size, most);
      while (rest.length > least && rest.endsWith('0')) rest = rest.slice(0, -1);
      if (useGrouping) whole = whole.replace(/\B(?=(\d{3})+$)/g, ',');
      text = rest === '' ? whole : `${whole}.${rest}`;
    }
    return sign + (style === 'currency' ? '$' : '') + text + (style === 'percent' ? '%' : '');
  };
  const number = () =>
    function toLocaleString(locale, options) {
      const value = this.valueOf();
      const isKnown =
        isEnglish(locale) &&
        only(options, ['style', 'currency', 'minimumFractionDigits', 'maximumFractionDigits', 'useGrouping']) &&
        ['decimal', 'percent', 'currency', undefined].includes(options?.style) &&
        [true, false, undefined].includes(options?.useGrouping) &&
        (options?.style !== 'currency' || (options.currency === 'USD' && /^en(-US)?$/.test(String(locale ?? 'en'))));
      return isKnown ? english(value, options) : refuse('toLocaleString', 'use `toFixed`');
    };
  replace(Number.prototype, 'toLocaleString', number);
  replace(BigInt.prototype, 'toLocaleString', number);

  const DATES = {
    'en-US': (year, month, day) => `${month}/${day}/${year}`,
    'en-GB': (year, month, day) => `${String(day).padStart(2, '0')}/${String(month).padStart(2, '0')}/${year}`,
    'de-DE': (year, month, day) => `${day}.${month}.${year}`,
    'sv-SE': (year, month, day) => `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`,
  };
  const twoDigits = (number) => String(number).padStart(2, '0');
  // Returns the fields of a date, or undefined if its formats are not known with these options.
  const fields = (date, options) => {
    const isUtc = options?.timeZone === 'UTC';
    const get = (name) => date[`get${isUtc ? 'UTC' : ''}${name}`]();
    const year = get('FullYear');
    if (!only(options, ['timeZone']) || !(isUtc || options?.timeZone === undefined) || year < 1000 || year > 9999) return undefined;
    return { year, month: get('Month') + 1, day: get('Date'), hour: get('Hours'), minute: get('Minutes'), second: get('Seconds') };
  };
  const dateOf = (format, { year, month, day }) => format(year, month, day);
  const timeOf = ({ hour, minute, second }) =>
    `${hour % 12 || 12}:${twoDigits(minute)}:${twoDigits(second)} ${hour < 12 ? 'AM' : 'PM'}`;
  const date = (name, write, isWithTime) =>
    replace(Date.prototype, name, () =>
      function (locale = 'en-US', options) {
        const format = DATES[String(locale)];
        const known = fields(this, options);
        if (Number.isNaN(this.getTime())) return 'Invalid Date';
        if (format === undefined || known === undefined || (isWithTime && String(locale) !== 'en-US')) {
          return refuse(name, 'use `toISOString`');
        }
        return write(format, known);
      });
  date('toLocaleDateString', dateOf, false);
  date('toLocaleTimeString', (_, known) => timeOf(known), true);
  date('toLocaleString', (format, known) => `${dateOf(format, known)}, ${timeOf(known)}`, true);
  replace(Array.prototype, 'toLocaleString', (original) =>
    function toLocaleString(locale, options) {
      if (locale === undefined && options === undefined) return original.call(this);
      return refuse('toLocaleString', 'use `map` and `join`');
    });

  // The order of the Unicode collation algorithm for the characters of ASCII.
  const ORDER = '\t\n\v\f\r _-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz';
  const RANKS = new Map([...ORDER].map((letter, rank) => [letter, rank]));
  // Accents in the order of that algorithm.
  const ACCENTS = '\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0327\u0328\u0304';
  const KNOWN = new RegExp(`^([\\t-\\r\\x20-\\x7e][${ACCENTS}]*)*$`);
  const compare = (one, other, rank, isNumeric) => {
    const letters = isNumeric ? /\d+|\D[\u0300-\u036f]*/g : /.[\u0300-\u036f]*/gs;
    const [left, right] = [one.match(letters) ?? [], other.match(letters) ?? []];
    for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
      const areNumbers = isNumeric && /^\d/.test(left[at]) && /^\d/.test(right[at]);
      const [first, second] = areNumbers ? [BigInt(left[at]), BigInt(right[at])] : [rank(left[at]), rank(right[at])];
      if (first !== second) return first < second ? -1 : 1;
    }
    return Math.sign(left.length - right.length);
  };
  const letter = (text) => RANKS.get(text[0].toLowerCase());
  const accents = (text) => [...text.slice(1)].map((mark) => String.fromCharCode(ACCENTS.indexOf(mark) + 1)).join('');
  const isCapital = (text) => (text === text.toLowerCase() ? 0 : 1);
  replace(String.prototype, 'localeCompare', () =>
    function localeCompare(that, locale, options) {
      const [one, other] = [String(this).normalize('NFD'), String(that).normalize('NFD')];
      const sensitivity = options?.sensitivity ?? 'variant';
      const isPlain = /^[\0-\x7f]*$/.test(one + other);
      const isKnown =
        (isEnglish(locale) || /^(de|it|nl|pt)(-[A-Z]{2})?$/.test(String(locale)) || (isPlain && /^(fr|es)(-[A-Z]{2})?$/.test(String(locale)))) &&
        only(options, ['sensitivity', 'numeric', 'usage']) &&
        ['base', 'accent', 'case', 'variant'].includes(sensitivity) &&
        (one === other || (KNOWN.test(one) && KNOWN.test(other)));
      if (!isKnown) return refuse('localeCompare', 'compare with `<`, or compare `normalize` and `toLowerCase` of both');
      if (one === other) return 0;
      const isNumeric = options?.numeric === true;
      const primary = compare(one, other, letter, isNumeric);
      if (primary !== 0 || sensitivity === 'base') return primary;
      const secondary = sensitivity === 'case' ? 0 : compare(one, other, accents, false);
      if (secondary !== 0 || sensitivity === 'accent') return secondary;
      return compare(one, other, isCapital, false);
    });
  for (const name of ['toLocaleUpperCase', 'toLocaleLowerCase']) {
    replace(String.prototype, name, (original) =>
      function (locale) {
        const isSpecial = locale !== undefined && /^(tr|az|lt|el|hy)\b/i.test(String(locale));
        return isSpecial ? refuse(name, 'use `toUpperCase` or `toLowerCase`') : original.call(this);
      });
  }
})
