/* Stores a greeting, reads it back, and counts: greeting HOST NATIVE_PORT. */

#include <glimmer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static glimmer_bytes bytes(const char *text)
{
    glimmer_bytes bytes = {(const uint8_t *)text, strlen(text)};
    return bytes;
}

static void check(const char *what, glimmer_outcome outcome, glimmer_outcome expected)
{
    if (outcome != expected) {
        fprintf(stderr, "%s: %s\n", what, glimmer_outcome_text(outcome));
        exit(1);
    }
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: greeting HOST NATIVE_PORT\n");
        return 2;
    }
    glimmer_outcome outcome;
    glimmer_settings settings = glimmer_settings_default();
    settings.deadline_us = 5000000;
    glimmer_client *client = glimmer_connect(arguments[1], (uint16_t)atoi(arguments[2]), &settings, &outcome);
    check("connect", outcome, GLIMMER_OUTCOME_OK);

    const glimmer_bytes key = bytes("greeting"), none = bytes("none"), visits = bytes("visits");
    check("put", glimmer_put(client, key, bytes("hello"), 7, 60), GLIMMER_OUTCOME_OK);
    check("add", glimmer_add(client, key, bytes("again"), 0, 0), GLIMMER_OUTCOME_NOT_STORED);

    glimmer_item item;
    check("get", glimmer_get_for_swap(client, key, &item), GLIMMER_OUTCOME_OK);
    printf("%.*s, flags %u\n", (int)item.value_bytes, (const char *)item.value, (unsigned)item.flags);
    const uint64_t cas = item.cas;
    glimmer_item_free(&item);
    check("swap", glimmer_compare_and_swap(client, key, cas, bytes("hi"), 0, 0), GLIMMER_OUTCOME_OK);
    check("late swap", glimmer_compare_and_swap(client, key, cas, bytes("ho"), 0, 0), GLIMMER_OUTCOME_NOT_STORED);

    uint64_t number = 0;
    check("put", glimmer_put(client, visits, bytes("41"), 0, 0), GLIMMER_OUTCOME_OK);
    check("increment", glimmer_increment(client, visits, 1, &number), GLIMMER_OUTCOME_OK);
    printf("%llu visits\n", (unsigned long long)number);

    const glimmer_bytes keys[] = {key, none, visits};
    glimmer_item items[3];
    glimmer_outcome outcomes[3];
    check("get many", glimmer_get_many(client, keys, 3, items, outcomes), GLIMMER_OUTCOME_OK);
    for (int i = 0; i < 3; i++) {
        printf("%.*s: ", (int)keys[i].length, (const char *)keys[i].data);
        if (outcomes[i] == GLIMMER_OUTCOME_OK)
            printf("%.*s\n", (int)items[i].value_bytes, (const char *)items[i].value);
        else
            printf("%s\n", glimmer_outcome_text(outcomes[i]));
        glimmer_item_free(&items[i]);
    }

    check("touch", glimmer_touch(client, key, 10), GLIMMER_OUTCOME_OK);
    check("delete", glimmer_delete(client, key), GLIMMER_OUTCOME_OK);
    check("delete again", glimmer_delete(client, key), GLIMMER_OUTCOME_NOT_FOUND);
    glimmer_free(client);
    return 0;
}
